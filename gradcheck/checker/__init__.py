"""Both witnesses, the differences and the tape, are heard about a claimed gradient, and a verdict is reached.

From the problem to the verdict: `problem` is a function with its claimed vjp, `point` that problem where it is checked.
`look` takes one direction and one cotangent, and asks what backward claims, what the differences see and, by
`beside_tape`, what the tape says; `decide` is the decision on it. `gradient` leads from look to look: `closer` at small
shares, `elsewhere` where nothing is seen here, `kinks` where there is no derivative, `structure` at diagonal Jacobians,
`low_precision` in the inputs' own dtypes. `contract` holds what must be true beside the derivative. After a FAIL,
`name` finds the wrong entries, and `causes` why: from the tape, or by `hypotheses` about the numbers.
"""
