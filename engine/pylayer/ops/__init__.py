from pylayer.tensor import Tensor
from pylayer.ops import elementwise
Tensor.__add__ = elementwise.add
Tensor.__mul__ = elementwise.multiply
Tensor.__sub__ = elementwise.subtract
Tensor.__neg__ = elementwise.negative
Tensor.__rsub__ = lambda x, y: elementwise.add(elementwise.negative(x), y)
