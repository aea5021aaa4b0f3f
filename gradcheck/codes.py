"""Codes of mistakes in a gradient: one row per code, with the text that ``gradcheck explain``
shows.
"""

from __future__ import annotations

from typing import NamedTuple


class Code(NamedTuple):
    """A diagnosis: its title, its cause, how to recognise it, what to do, and an example of wrong
    and right.
    """

    title: str
    cause: str
    tell: str
    fix: str
    example: str


def is_contract(code: str) -> bool:
    """Whether a code is a broken contract, which is certain."""
    return "GC131" <= code <= "GC139" or "GC161" <= code <= "GC167"


def says_what_is_wrong(code: str) -> bool:
    """Whether a code says what is wrong (a contract, a second derivative) but not why."""
    return is_contract(code) or code == "GC140"


def is_cause(code: str) -> bool:
    """Whether a code is a cause that explains the numbers."""
    return "GC101" <= code < "GC131" or "GC151" <= code <= "GC152"


CODES: dict[str, Code] = {
    "GC101": Code(
        "constant factor",
        "The backward is the derivative times a constant: a 2 from a square or a batch size is "
        "missing or appears twice.",
        "numeric = c · analytic for every entry, with the same c.",
        "Multiply backward's result by c, and find where c belongs in the formula.",
        "y = x * x      wrong: dy * x      right: dy * 2 * x",
    ),
    "GC102": Code(
        "wrong sign",
        "A minus was forgotten, or there is one too many.",
        "numeric = −analytic for every entry.",
        "Negate backward's gradient for this input.",
        "y = a - b      wrong: return dy, dy      right: return dy, -dy",
    ),
    "GC103": Code(
        "transposed",
        "The gradient of a matrix was computed in the layout of its transpose; a square one gives "
        "no shape error.",
        "numeric = analytic with its last two axes exchanged.",
        "Transpose the returned gradient, or swap the operands of the product that makes it.",
        "y = x @ w      wrong: dw = dy.T @ x      right: dw = x.T @ dy",
    ),
    "GC104": Code(
        "permuted, rolled or flipped",
        "The elements are right, but in the wrong places: an index is off by one, a permutation "
        "was not inverted.",
        "numeric = analytic after a roll, flip or permutation of axes, or of the ranks of a "
        "world.",
        "Undo the forward's rearrangement in backward: roll by the opposite amount, use the "
        "inverse permutation.",
        "y = x.roll(1)      wrong: dy.roll(1)      right: dy.roll(-1)",
    ),
    "GC105": Code(
        "gradients of two inputs swapped",
        "backward returns the right gradients in the wrong order.",
        "numeric of this input = analytic of another, of the same shape.",
        "Return one gradient per Tensor input, in the order of forward's arguments.",
        "forward(ctx, a, b)      wrong: return db, da      right: return da, db",
    ),
    "GC106": Code(
        "missing sum over a broadcast axis",
        "An input was broadcast in forward; its gradient must sum the cotangent over the axes it "
        "was repeated along.",
        "numeric = backward's result for the cotangent summed over an axis.",
        "Sum over the broadcast axes instead of taking one slice or the mean.",
        "y = x + bias      wrong: dbias = dy[0]      right: dbias = dy.sum(0)",
    ),
    "GC107": Code(
        "dead elements",
        "Some elements get a gradient of 0 where the derivative is not: a mask is too narrow, a "
        "slice misses its end.",
        "All wrong entries are exactly 0.",
        "Look at the indices listed: they show which elements the mask or the slice leaves out.",
        "wrong: dx[:-1] = dy[:-1]      right: dx[:] = dy",
    ),
    "GC108": Code(
        "gradient is zero",
        "backward returns zeros (or None, or the graph is cut), but the output depends on the "
        "input.",
        "analytic is exactly 0 everywhere; numeric is not.",
        "Return the derivative times the cotangent; check that no intermediate value was "
        "detached. An input that takes no gradient is passed as a Tensor with "
        "stop_gradient=True, in torch with requires_grad=False.",
        "wrong: return zeros_like(x)      right: return dy * 2 * x",
    ),
    "GC109": Code(
        "cotangent ignored",
        "backward returns the derivative itself, not the derivative times the incoming gradient.",
        "backward gives the same result for every cotangent. It looks right wherever the loss is "
        "a plain sum.",
        "Multiply by the incoming gradient.",
        "y = tanh(x)      wrong: return 1 - y * y      right: return dy * (1 - y * y)",
    ),
    "GC110": Code(
        "cotangent used non-linearly",
        "A vector-Jacobian product is linear in the cotangent. Clipping, squaring, or a max(dy, "
        "0) is not.",
        "b(a·g₁ + g₂) differs from a·b(g₁) + b(g₂).",
        "Use the cotangent once, as a factor. Clip gradients in the optimiser, not in a layer.",
        "wrong: return clip(dy, -1, 1) * d      right: return dy * d",
    ),
    "GC111": Code(
        "off by a simple function of x or y",
        "A part of the formula is missing, doubled, or has the wrong power.",
        "numeric = analytic · f, with one f of the input or the output for all elements.",
        "Multiply by that f; usually one symbol in the formula is wrong.",
        "y = tanh(x)      wrong: dy * (1 - y)      right: dy * (1 - y * y), which is 1 + y times "
        "as much",
    ),
    "GC112": Code(
        "mean where a sum was meant, or a sum where a mean was",
        "The gradient is off by the number of elements (or of those along an axis).",
        "numeric = analytic · N or analytic / N.",
        "A mean's gradient divides by the number of elements that were averaged; a sum's does "
        "not.",
        "y = x.mean()      wrong: dy * ones_like(x)      right: dy * ones_like(x) / x.size",
    ),
    "GC113": Code(
        "right, but digits are lost",
        "The formula is right, but computed in fewer digits than the layer's dtype has: it casts "
        "to a narrower dtype, "
        "subtracts numbers that are nearly equal, overflows or underflows.",
        "backward loses more digits than automatic differentiation of forward would in the same "
        "dtypes, and more than its own operations round.",
        "Leave the cast out, or compute the critical part in a wider dtype; or rearrange it: "
        "subtract the maximum, use "
        "expm1, log1p, rsqrt. If the loss is intended: `expect: {precision: loose}`, or "
        "precision=\"loose\".",
        "float64: wrong: (dy.astype('float32') * w).astype('float64')      right: dy * w",
    ),
    "GC114": Code(
        "a term is missing or surplus",
        "The derivative is a sum, as by the product rule, and one of its terms was left out or "
        "added.",
        "numeric = analytic + c · dy · f, with one f of the input or the output.",
        "Add that term.",
        "y = x * sigmoid(x)      wrong: dy * s      right: dy * (s + y * (1 - s))",
    ),
    "GC115": Code(
        "missing conjugate",
        "For complex numbers the gradient of a holomorphic f is dy · conj(f'(x)).",
        "numeric = conj(analytic), or they agree once one factor is conjugated.",
        "Conjugate the derivative, not the cotangent.",
        "y = x * w      wrong: dx = dy * w      right: dx = dy * w.conj()",
    ),
    "GC116": Code(
        "wrong operand, or operands in the wrong order",
        "A product of matrices in backward has the wrong factor, the wrong transpose or the wrong "
        "order.",
        "numeric is a product of the cotangent and another input; the message names it.",
        "Use the product in the message.",
        "y = a @ b      wrong: da = dy @ b      right: da = dy @ b.T",
    ),
    "GC117": Code(
        "a share of the gradient is missing",
        "Backward treats an intermediate value as a constant, or does not use the incoming "
        "gradient of an output.",
        "backward is the gradient of the recorded forward without the share through the reported "
        "line.",
        "Add the share: the gradient with respect to the intermediate value, times its own "
        "derivative.",
        "c = x - x.mean()      wrong: return dc      right: return dc - dc.mean()",
    ),
    "GC118": Code(
        "a share of the gradient is scaled",
        "One of the paths from an input to the output is counted with a wrong sign, twice, or "
        "with a wrong length.",
        "backward is right except for a factor on the share through the reported line.",
        "Look in backward for the term that belongs to this line; compare its sign, its "
        "constants, sum and mean.",
        "v = (c * c).mean()      wrong: dc = dv * c / n      right: dc = dv * 2 * c / n",
    ),
    "GC119": Code(
        "wrong rule for an operation",
        "One operation of the forward is differentiated by the wrong rule.",
        "backward is the recorded forward's gradient with that rule in place of the right one at "
        "the reported line.",
        "Use the operation's derivative: 1 − y² for tanh, y (1 − y) for sigmoid, y (g − Σ y g) "
        "for softmax.",
        "t = tanh(c)      wrong: dc = dt * (1 - t)      right: dc = dt * (1 - t * t)",
    ),
    "GC120": Code(
        "kink or jump",
        "The function has no derivative here: left and right differ. Any gradient between the two "
        "is accepted.",
        "The one-sided derivatives stay apart as the step shrinks.",
        "Nothing, if the gradient is between the two. To check the formula, move the inputs off "
        "the kink.",
        "relu at 0: left 0, right 1; a gradient of 0, 1 or 0.5 is accepted and marked KINK",
    ),
    "GC121": Code(
        "saturated, or too noisy to tell",
        "Around this point the forward does not change, or changes less than its own rounding "
        "errors.",
        "The error bound is wider than the derivative, and the forward was not fully recorded, so "
        "automatic differentiation cannot decide either.",
        "Choose inputs where the function responds, or a forward that keeps more digits (expm1, "
        "log1p, float64).",
        "tanh at 30 is 1.0 to the last bit: a backward that gives 0 everywhere looks right there",
    ),
    "GC122": Code(
        "straight through",
        "The gradient is passed on as if an operation, most often one with derivative 0 such as "
        "round or sign, or the whole layer were not there.",
        "backward is the recorded forward's gradient with the operation at the reported line "
        "left out, or it is the cotangent itself.",
        "Return the derivative, or, if this is intended, declare it: `gradient: straight-through` "
        "in `expect`.",
        "y = round(x)      straight through: return dy      derivative: return zeros_like(x)",
    ),
    "GC123": Code(
        "wrong mask",
        "The gradient passes where the forward selects something else: a mask is left out, or "
        "belongs to the other branch.",
        "backward is the recorded forward's gradient with another mask at the reported line.",
        "Multiply by the mask of the forward: 1 where this input was selected, 0 elsewhere.",
        "y = clip(x, 0, 1)      wrong: return dy      right: return dy * ((x >= 0) & (x <= 1))",
    ),
    "GC124": Code(
        "the gradient is not finite",
        "backward gives inf or NaN although the function's slope is finite: it divides by a "
        "value that is 0 at this point.",
        "The gradient is not finite for a small cotangent either, and no slope grows that way as "
        "the step shrinks.",
        "Guard the division, for example by max(norm, eps), or select before it: NaN times 0 is "
        "NaN.",
        "y = norm(x), at 0      wrong: return dy * x / y      right: return dy * x / maximum(y, "
        "1e-12)",
    ),
    "GC125": Code(
        "backward never ran",
        "No evaluation of the check called the hand-written backward: apply is overridden, "
        "forward was called directly, no input needs a gradient, no gradient reaches its "
        "outputs, or another branch was taken. The check compared automatic differentiation with "
        "itself.",
        "The framework reports every layer that is applied and every backward that runs; this one "
        "is not among them.",
        "Call the layer by the apply of its base class (PyLayer, Function), at inputs and in a "
        "mode in which it is used. If a branch deliberately does not use it, check that branch as "
        "a separate function; a module in eval mode passes, marked.",
        "wrong: y = Own.forward(ctx, x)      right: y = Own.apply(x)",
    ),
    "GC126": Code(
        "right except for a small share",
        "The gradient is an approximation: an iteration that stops early, a constant of few "
        "digits.",
        "Backward is off by more than rounding, but by less than 1 % of the largest entry.",
        "Let the iteration run until nothing changes, or allow the remaining error by rtol.",
        "while abs(f(y)) > 1e-6: …      with the gradient of the exact root: rtol=1e-5",
    ),
    "GC127": Code(
        "one expression of backward",
        "A mistake in one expression of backward: another variable, a sign, an axis, an index, a "
        "factor.",
        "With only this expression changed, backward gives the right gradient at other points, "
        "sizes and dtypes too.",
        "Apply the fix; gradcheck derive --write does.",
        "wrong: return dy * (1 - y)      right: return dy * (1 - y * y)",
    ),
    "GC131": Code(
        "forward is not deterministic",
        "Two calls with the same inputs give different outputs, although the generators of the "
        "framework, of NumPy and of Python were reset: forward uses a private generator, or a "
        "counter.",
        "The outputs differ by more than summation in another order explains, and by more than "
        "nondet of the largest entry.",
        "Seed the generator in forward, draw the random part once and pass it as an input, or "
        "switch to evaluation mode for the check. For kernels that add in another order each "
        "time, give nondet=1e-6.",
        "wrong: mask = self.generator.random(x.shape) > p      right: forward(ctx, x, mask)",
    ),
    "GC132": Code(
        "backward is not deterministic",
        "Two calls with the same inputs and cotangent give different gradients.",
        "The gradients differ by more than summation in another order explains, and by more than "
        "nondet of the largest entry; the outputs do not.",
        "Save in forward what backward needs (the mask, the indices); do not draw it again. "
        "For kernels that add in another order each time, give nondet=1e-6.",
        "wrong: backward draws a new mask      right: ctx.save_for_backward(mask)",
    ),
    "GC133": Code(
        "forward changes its input",
        "forward writes into its argument, so backward, and any other code that holds the "
        "tensor, reads another value.",
        "The argument's values differ before and after the call, and forward does not return it.",
        "Write into a copy; or return the argument, which then is the output (torch: after "
        "ctx.mark_dirty). Tensors that need no gradient, such as running statistics, may be "
        "changed by in-place operations.",
        "wrong: x *= 2; return softmax(x)      right: return softmax(2 * x)",
    ),
    "GC134": Code(
        "backward changes its arguments",
        "backward writes into the incoming gradient or into a saved tensor, which may be in use "
        "elsewhere.",
        "The memory differs before and after the call of backward.",
        "Use the out-of-place form.",
        "wrong: dy *= 2; return dy      right: return dy * 2",
    ),
    "GC135": Code(
        "gradient shares memory with an input",
        "backward returns (a view of) an input; accumulating into the gradient then changes the "
        "input.",
        "The returned gradient and the input overlap in memory.",
        "Return a copy: clone() it, or multiply it with the cotangent out of place.",
        "wrong: return x      right: return dy * x",
    ),
    "GC136": Code(
        "undefined or zero cotangent mishandled",
        "When an output takes no part in the loss, its cotangent is zeros, or None if grads are "
        "not materialized.",
        "With a zero or undefined cotangent for one output, backward fails, or gives another "
        "gradient than that of the remaining outputs.",
        "Treat None as zero, for each output separately.",
        "wrong: dx = d1 * a + d2 * b with d2 None      right: dx = d1 * a; if d2 is not None: dx "
        "= dx + d2 * b",
    ),
    "GC137": Code(
        "wrong shape, dtype or number of gradients",
        "backward must return one gradient per Tensor input, in torch one per argument, each of "
        "its input's shape and dtype. None counts as zeros; integers and booleans have no "
        "gradient. Paddle's layers may leave out the last ones if their inputs have "
        "stop_gradient True.",
        "The number, shape or dtype of the returned gradients differ.",
        "Sum over broadcast axes, cast back, return None only where no gradient is needed.",
        "x of shape [3], y of [2, 3]      wrong: dx of [2, 3]      right: dx.sum(0) of [3]",
    ),
    "GC138": Code(
        "state that two calls share",
        "forward stores values for backward on the class, in a global or in a buffer that the "
        "next call overwrites. If the layer runs twice before backward, as with shared weights "
        "or two branches, one call reads the values of the other.",
        "The gradient changes if forward runs at other values between forward and backward.",
        "Keep it on ctx, of which every call has its own: save_for_backward, or an attribute.",
        "wrong: Layer.mask = x > 0      right: ctx.mask = x > 0",
    ),
    "GC139": Code(
        "fwd computes another function",
        "JAX runs the function itself where no gradient is taken, and its fwd where one is. The "
        "two return different values, so the loss that is printed is not the one that is "
        "minimized.",
        "The outputs of the custom_vjp, or custom_jvp, differ from those of its fwd, or of its "
        "jvp rule, at the same arguments by more than rounding.",
        "Compute the outputs in fwd by calling the function itself.",
        "wrong: fwd = lambda x: (jnp.tanh(x / 2), x)      right: fwd = lambda x: (f(x), x)",
    ),
    "GC140": Code(
        "second derivative wrong, first right",
        "The gradient is right, but backward computes it from values that are detached, saved as "
        "plain numbers, or computed inside forward, where nothing is recorded.",
        "The first-order check passes, the check of the gradient's own derivative does not.",
        "Compute in backward from saved inputs and outputs with recorded operations; use "
        "once_differentiable to refuse "
        "instead.",
        "wrong: y = tanh(x).detach() saved      right: ctx.save_for_backward(y)",
    ),
    "GC151": Code(
        "counted once for each rank",
        "A value that all ranks share counts once in the loss, and the gradient of a value that "
        "each rank has is that rank's own; here the gradient is also summed over the ranks, or "
        "divided by their number.",
        "numeric = analytic / N or N · analytic, for a world, or a group, of N ranks.",
        "Leave the all-reduce out (or add the one that is missing); divide by N only where "
        "forward takes a mean.",
        "y = all_reduce(x), replicated      wrong: all_reduce(dy)      right: dy",
    ),
    "GC152": Code(
        "not summed over the ranks",
        "Several ranks use the input, and each returns the gradient that belongs to its own use.",
        "The sum of the ranks' gradients is the derivative.",
        "All-reduce the gradient in backward (reduce-scatter it, if each rank has a part of the "
        "input); or declare the "
        "input partial, if the trainer sums its gradient later.",
        "y = x (on all ranks)      wrong: return dy      right: dx = dy.clone(); "
        "dist.all_reduce(dx); return dx",
    ),
    "GC161": Code(
        "ranks disagree on a replicated output",
        "An output is declared to be the same on all ranks, but is not: a reduction is missing in "
        "forward, or the "
        "ranks draw different random numbers.",
        "Two ranks return different values.",
        "Add the reduction; use one seed for all ranks; or declare the output split.",
        "y = x @ w on each rank      wrong: return y      right: dist.all_reduce(y); return y",
    ),
    "GC162": Code(
        "ranks disagree on a replicated gradient",
        "An input that all ranks hold must get the same, complete gradient on all of them: "
        "otherwise its copies diverge in training.",
        "Two ranks return different gradients of it.",
        "All-reduce the gradient in backward; or declare the input partial, if the trainer sums "
        "its gradient later.",
        "b on all ranks      wrong: return dy.sum(0)      right: db = dy.sum(0); "
        "dist.all_reduce(db); return db",
    ),
    "GC163": Code(
        "calls of ranks do not match",
        "All ranks of a group must make the same calls in the same order, with Tensors of the "
        "same shape and dtype, "
        "and the same root and reduction.",
        "Two ranks make different calls at the same point.",
        "Make the calls outside of branches that depend on the rank or on values.",
        "wrong: if rank == 0: dist.all_reduce(x)      right: dist.all_reduce(x) on all ranks",
    ),
    "GC164": Code(
        "ranks wait for each other",
        "A rank waits for a call or a message that no other rank makes; on a cluster the job "
        "hangs.",
        "Every rank waits or has ended, and no call can be answered.",
        "Make the call on all ranks; let one side of an exchange receive first, or use "
        "batch_isend_irecv.",
        "wrong: send(x, other); recv(y, other) on both      right: batch_isend_irecv([...])",
    ),
    "GC165": Code(
        "a result is not waited for",
        "A call with sync_op=False has its result once wait() of its task returns; until then "
        "the Tensor may hold anything, and a Tensor that is being sent may still be read.",
        "A task is still pending when backward returns; or outputs or gradients become NaN if "
        "results that were not waited for are set to NaN; or a sent Tensor changes before it is "
        "waited for.",
        "Call wait() on the task before the result is used.",
        "wrong: dist.all_reduce(x, sync_op=False)      right: task = ...; task.wait()",
    ),
    "GC166": Code(
        "backward needs a contiguous cotangent",
        "The gradient of a result that is transposed or permuted later has its axes in another "
        "order in memory, and backward reads that memory as if it were contiguous: view(), a "
        "kernel that takes a pointer, as_strided().",
        "For a cotangent with the same values but its axes in another order in memory, backward "
        "raises or gives another gradient.",
        "Call contiguous() on the cotangent first, or use reshape() in place of view().",
        "wrong: g.view(-1)      right: g.contiguous().view(-1)",
    ),
    "GC167": Code(
        "a gradient depends on which other inputs need one",
        "Where a weight is frozen, backward takes another path: it reads "
        "needs_input_grad of another input than the one whose gradient it computes, or forward "
        "does not save what that gradient needs.",
        "With the same values, the gradient of an input changes, or backward raises, if no other "
        "input needs a gradient.",
        "Compute the gradient of each input whenever that input needs one, whatever others need.",
        "wrong: if ctx.needs_input_grad[0]: gw = g.t() @ x      right: needs_input_grad[1] for w",
    ),
}  # fmt: skip
"""The diagnoses by code, in order."""


def explained(code: str) -> list[str]:
    """The text of a code, line by line.

    Raises:
        KeyError: there is no such code.
    """
    row = CODES[code]
    return [
        f"{code}: {row.title}",
        "",
        f"Cause        {row.cause}",
        f"How to tell  {row.tell}",
        f"The fix      {row.fix}",
        f"Example      {row.example}",
    ]
