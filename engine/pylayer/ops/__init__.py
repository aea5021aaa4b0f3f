"""The operations, a file per family. Importing the package gives Tensor its operators and methods."""

from pylayer.ops import methods, spellings

methods.attach()
spellings.attach()
