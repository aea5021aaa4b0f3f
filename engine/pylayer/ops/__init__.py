"""The operations, a file per family. Importing the package gives Tensor its operators and methods.

Invalid arguments raise ValueError, and positions out of range IndexError, mostly with Paddle's
message. If Paddle raises another error, the function's docstring names it.
"""

from pylayer.ops import methods, spellings

methods.attach()
spellings.attach()
