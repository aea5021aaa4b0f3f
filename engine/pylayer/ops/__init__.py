"""The operations, a file per family. Importing the package gives Tensor its operators and methods.

Arguments that do not fit raise ValueError, and positions out of range IndexError, for the most part
in Paddle's words. Where Paddle raises another error, the function's docstring names it.
"""

from pylayer.ops import methods, spellings

methods.attach()
spellings.attach()
