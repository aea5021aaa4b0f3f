"""What a scenario with a layer checks: that there is something, and that it can be, as far as reading its code tells.

What is reported here would end in an ERROR, in an INCONCLUSIVE, or, worse, in a PASS of a run that has checked nothing.
It is looked for in files that are well formed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from math import inf
from typing import NamedTuple

from gradcheck.spec.code import check_python, position, words_of
from gradcheck.spec.containers import variable, variables
from gradcheck.spec.diagnostic import listing, quote
from gradcheck.spec.operations import OPERATIONS
from gradcheck.spec.parts import all_expectations, input_shape, shape_of, world_key
from gradcheck.spec.python import layer_classes, nodes, read_and_bound, static_forward, words
from gradcheck.spec.text import Place, Remark, SpecText
from gradcheck.spec.tree import Node
from gradcheck.support.syntax_tree import last_name

HOLDING = ("values", "raises", "warns", "calls", "grads")
"""Keys of an expectation that something is held against, beside the gradient check."""


class Subject(NamedTuple):
    """A scenario with a layer, and what is known of it."""

    scenario: Node
    tree: ast.Module | None
    """Of the layer's source, if it has any."""
    call: ast.AST | None
    differentiable: set[str]
    """The inputs that take a gradient."""

    @property
    def inputs(self) -> Mapping[str, tuple[Node, Node]]:
        """Name → key and value."""
        return self.scenario.mapping("inputs").entries

    @property
    def expect(self) -> Node:
        """What must hold."""
        return self.scenario.mapping("expect")

    @property
    def asks_for_gradients(self) -> bool:
        """Whether gradients are taken and looked at: by the check, or held against numbers."""
        if "raises" in self.expect.entries:
            return False
        checked = self.expect.string("gradient") != "unchecked" and bool(self.differentiable)
        return checked or bool(self.expect.mapping("grads").entries)


def check_subject(scenario: Node, differentiable: set[str], text: SpecText) -> None:
    """Report, of a scenario whose layer is run by itself, the first reason why nothing can be checked."""
    layer, call = scenario.get("layer"), scenario.get("call")
    if layer is None or "script" in scenario.entries:
        return
    code, expression = check_python(layer, text, "the layer"), check_python(call, text, "call")
    tree = code.tree if code is not None else None
    called = expression.tree if expression is not None else None
    subject = Subject(scenario, tree if isinstance(tree, ast.Module) else None, called, differentiable)
    for look in (arguments, missing_methods, unused, without_an_element, nothing_asked):
        found = next(look(subject, text), None)
        if found is not None:
            text.report_all([found])
            return
    text.report_all(cotangents(subject))


def in_layer(subject: Subject, statement: ast.stmt, text: SpecText) -> Place:
    """Where a statement of the layer's source begins."""
    return position(subject.scenario.entries["layer"][1], text, statement.lineno, statement.col_offset + 1)


# --------------------------------------------------------------------------- what is called
def arguments(subject: Subject, text: SpecText) -> Iterator[Remark]:
    """A layer that is called with all inputs in order and takes more, or fewer."""
    if subject.call is not None or "raises" in subject.expect.entries:
        return
    layer, count = subject.scenario.entries["layer"][1], len(variables(subject.inputs))
    if (name := layer.string("op")) in OPERATIONS:
        least, most, _ = OPERATIONS[str(name)]
        what, place = f"'{name}'", layer.place
    elif (function := called(subject)) is not None:
        least, most = arity(function)
        place = in_layer(subject, function, text)
        what = function.name if function.name == "forward_fn" else f"forward of {applied(subject)[0].name}"
    else:
        return
    if not least <= count <= most:
        takes = f"{least:g}" if least == most else f"at least {least}" if count < least else f"at most {most:g}"
        given = f"there {'is' if count == 1 else 'are'} {count or 'no'} input{'s' * (count != 1)}"
        help = "list them under 'inputs', in order, or say what to run with 'call: …'"
        yield place, f"{what} takes {takes} argument{'s' * (takes != '1')}, but {given}", help


def missing_methods(subject: Subject, text: SpecText) -> Iterator[Remark]:
    """A layer whose gradient is asked for, and that has no backward; or one without a forward."""
    if "raises" in subject.expect.entries:
        return
    help = "add it, or write 'gradient: unchecked', with what must hold in its place"
    for cls in applied(subject):
        place = in_layer(subject, cls, text)
        if lacks(subject, cls, "forward"):
            yield place, f"{cls.name} has no forward", "add it: a staticmethod that takes ctx, then the inputs"
        if subject.asks_for_gradients and lacks(subject, cls, "backward"):
            yield place, f"{cls.name} has no backward, and its gradient is asked for", help
    if subject.tree is not None and subject.asks_for_gradients and subject.call is None:
        function = called(subject)
        if function is not None and function.name == "forward_fn" and "backward_fn" not in bound(subject.tree):
            place = in_layer(subject, function, text)
            yield place, "there is no backward_fn, and the gradient of forward_fn is asked for", help


def unused(subject: Subject, text: SpecText) -> Iterator[Remark]:
    """A call that leaves out the layer, or an input that nothing uses."""
    scenario, call = subject.scenario, subject.scenario.get("call")
    if call is None or subject.call is None:
        return
    layer = scenario.entries["layer"][1]
    own = words(subject.call)
    if subject.tree is not None:
        named = bound(subject.tree) - set(variables(subject.inputs))
    else:
        named = {str(layer.string("op") or layer.string("ref")).replace(":", ".").rpartition(".")[2]}
    if "*" not in named and not named & own:
        help = f"apply what the layer defines: {listing(sorted(named))}" if named else "the layer defines nothing"
        yield call, "call: the layer takes no part in it", help
    for name, (key, _) in ((variable(name), entry) for name, entry in subject.inputs.items()):
        elsewhere = None if name in own else words_of(scenario, text)
        hidden = layer.get("ref") is None and elsewhere is None
        if name not in own and not hidden and name not in (elsewhere or ()):
            yield key, f"nothing uses the input {quote(name)}", "name it in the call, or remove it"


# --------------------------------------------------------------------------- what is held against it
def without_an_element(subject: Subject, text: SpecText) -> Iterator[Remark]:
    """Gradients of Tensors that have no element."""
    shapes = [input_shape(subject.inputs[name][1]) for name in subject.differentiable]
    if shapes and subject.asks_for_gradients and all(shape is not None and 0 in shape for shape in shapes):
        key = subject.inputs[min(subject.differentiable)][0]
        help = "give one a larger shape, or write 'gradient: unchecked'"
        yield key, "no input that takes a gradient has an element", help


def nothing_asked(subject: Subject, text: SpecText) -> Iterator[Remark]:
    """A layer of which nothing is expected, and no gradient can be."""
    said = all_expectations(subject.scenario)
    holds = any("gradient" in one.entries or any(one.mapping(key).entries for key in HOLDING) for one in said)
    if not subject.differentiable and not holds:
        id = subject.scenario.get("id") or subject.scenario
        help = (
            "give an input a floating dtype and no 'stop_gradient: true'; say in 'expect' what must hold; or write "
            "'gradient: unchecked' if it has but to run"
        )
        yield id, "this would check nothing: no input takes a gradient, and nothing else is expected", help


def cotangents(subject: Subject) -> Iterator[Remark]:
    """Cotangents of another shape than the output has, where that is known."""
    known = output_shape(subject)
    for expect in all_expectations(subject.scenario):
        cotangent = expect.get("cotangent")
        if cotangent is not None and known is not None and (shape := shape_of(cotangent)) != known:
            message = f"the cotangent has shape {list(shape)}, the output {list(known)}"
            yield cotangent, message, "a cotangent has the shape of its output"


def output_shape(subject: Subject) -> tuple[int, ...] | None:
    """The shape of the output, if what is expected of it tells, or it is that to which the inputs broadcast."""
    values = subject.expect.mapping("values")
    if (shape := values.get("out.shape") or values.get("list(out.shape)")) is not None:
        sizes = [item.value for item in shape.items]
        return tuple(size for size in sizes if isinstance(size, int)) if shape.kind == "sequence" else None
    if (out := values.get("out")) is not None:
        numbers = out.get("value") if out.kind == "mapping" else out
        return None if numbers is None else shape_of(numbers)
    name = subject.scenario.entries["layer"][1].string("op")
    if name not in OPERATIONS or subject.call is not None or world_key(subject.scenario) is not None:
        return None
    shapes = [input_shape(value) for _, value in subject.inputs.values()]
    whole = [shape for shape in shapes if shape is not None]
    operation = OPERATIONS[str(name)]
    if not operation.broadcasts or len(whole) != operation.least or len(whole) != len(shapes):
        return None
    return broadcast(whole)


def broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """What shapes broadcast to; None if they do not."""
    rank = max(map(len, shapes))
    sizes = []
    for column in zip(*((1,) * (rank - len(shape)) + shape for shape in shapes), strict=True):
        wide = {size for size in column if size != 1}
        if len(wide) > 1:
            return None
        sizes.append(wide.pop() if wide else 1)
    return tuple(sizes)


# --------------------------------------------------------------------------- the layer's source
def bound(tree: ast.Module) -> set[str]:
    """The names that a module binds at its top; ``*`` among them if there may be others."""
    found: set[str] = set()
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        waiting += ast.iter_child_nodes(node)
    return found


def applied(subject: Subject) -> list[ast.ClassDef]:
    """The PyLayers of the source that are applied: those that the call names, or the last."""
    if subject.tree is None:
        return []
    layers = layer_classes(subject.tree)
    if subject.call is not None:
        read, _ = read_and_bound(subject.call)
        return [layers[name] for name in read if name in layers]
    return [] if "forward_fn" in bound(subject.tree) else list(layers.values())[-1:]


def lacks(subject: Subject, cls: ast.ClassDef, method: str) -> bool:
    """Whether neither a class nor those of the source that it is derived from have a method, for certain."""
    assert subject.tree is not None
    classes = {node.name: node for node in subject.tree.body if isinstance(node, ast.ClassDef)}
    waiting, family = [cls], list[ast.ClassDef]()
    while waiting:
        one = waiting.pop()
        bases = {last_name(base) for base in one.bases} - {"PyLayer"}
        if one.decorator_list or one.keywords or not bases <= set(classes):  # it may get methods from elsewhere
            return False
        family.append(one)
        waiting += [classes[base] for base in bases if classes[base] not in family]
    given = any(method in bound(ast.Module(one.body, [])) for one in family)
    return not given and not any(is_set(node, method) for node in nodes(subject.tree))


def is_set(node: ast.AST, name: str) -> bool:
    """Whether code sets an attribute of a name, or may."""
    if isinstance(node, ast.Attribute):
        return node.attr == name and isinstance(node.ctx, ast.Store)
    return isinstance(node, ast.Name) and node.id == "setattr"


def called(subject: Subject) -> ast.FunctionDef | None:
    """The forward that takes the inputs, where the source shows it."""
    if subject.tree is None:
        return None
    if (function := static_forward(subject.tree)) is not None:
        return function
    cls = next(iter(applied(subject)), None)
    if cls is None or cls.decorator_list:
        return None
    found = [node for node in cls.body if isinstance(node, ast.FunctionDef) and node.name == "forward"]
    return found[0] if len(found) == 1 else None


def arity(function: ast.FunctionDef) -> tuple[int, float]:
    """The least and the most positional arguments of a forward, besides its context."""
    if [last_name(one) for one in function.decorator_list] not in ([], ["staticmethod"]):
        return 0, inf
    first = int(function.name == "forward")
    given = function.args
    count = len(given.posonlyargs) + len(given.args)
    if given.vararg is not None:
        return max(count - len(given.defaults) - first, 0), inf
    return max(count - len(given.defaults) - first, 0), count - first
