"""The tape: a call recorded operation by operation, as a witness of its gradient.

`graph` walks over a recording, `tape` gives its exact gradient and the noise of its values, `rounding` how far
gradients may be off, `kinks` where there is no derivative. `causes` says which mistake explains a wrong gradient:
`edges` are the places where one may be made, `candidates` the mistakes, `search` tries them, `lines` finds the user's
code.
"""
