"""NumPy code that tries to slip past a recording: each returns something of x [3, 4], w [4] and a [4, 4].

A snippet is the body of ``def f(x, w, a)``; one without a ``return`` is an expression.
"""

TEXT = r"""
# --- aliasing: views share memory
y = x.copy(); r = y[1]; r *= w; return y
y = x.copy(); y.T[0] = w[:3]; return y * y
y = x.copy(); v = y.reshape(-1); v[::2] = 0.5; return y * x
y = x.copy(); v = y.ravel(); v += 1; return y ** 2
y = x.copy(); f = y.flatten(); f += 1; return y ** 2 + f.sum()
y = x.copy(); d = np.diagonal(y); return d * w[:3] + y.sum()
y = x.copy(); v = y[::-1, ::2]; v[...] = v * v; return y
y = x.copy(); v = y[:, None, :]; v[0] = w; return y * x
y = x.copy(); v = y.swapaxes(0, 1); v[1] *= 2; return y
y = x.copy(); v = np.moveaxis(y, 0, 1); v -= v.mean(); return y * x
y = x.copy()\nfor row in y: row *= 2\nreturn y * x
y = x.copy()\nfor row in y.T: row += row.sum()\nreturn y
y = x.copy(); y.sort(); return y * w
y = x.copy(); y.sort(axis=0); return y * w
y = x.copy(); y[0], y[1] = y[1].copy(), y[0].copy(); return y * w
y = x.copy(); y[0], y[1] = y[1], y[0]; return y * w
y = x.copy(); y[[0, 1]] = y[[1, 0]]; return y * w
y = x.copy(); z = y; z += 1; return y * z
y = x.copy(); z = y[:]; z += w; return y * x
y = x.copy(); z = np.asarray(y); z[0] = 3; return y * x
y = x.copy(); z = np.array(y); z[0] = 3; return y * x + z
y = x.copy(); z = np.array(y, copy=False); z[0] = w; return y * x
y = x.copy(); z = np.atleast_2d(y); z[0] = w; return y * x
y = x.copy(); z = y.view(); z[1:] *= w; return y * x
y = x.copy(); z = y.view(np.ndarray); z[1:] *= w; return y * x
y = x.copy(); y[1:] = y[:-1]; return y * w
y = x.copy(); y[:-1] += y[1:]; return y * w
y = x.copy(); np.add(y[1:], y[:-1], out=y[1:]); return y * w
y = x.copy(); np.multiply(y, y, out=y); return y
y = x.copy(); np.exp(y, out=y[::1]); return y
y = np.zeros_like(x); np.sin(x, out=y); return y * x
y = np.empty((3, 4)); np.cos(x, out=y); return y * x
y = np.empty((4, 3)); np.cos(x, out=y.T); return y * x.T
y = np.ones((2, 3, 4)); y[0] *= x; y[1] -= x; return y.prod(0)
y = np.zeros((3, 8)); y[:, :4] = x; y[:, 4:] = x ** 2; return y
y = np.zeros((3, 8)); a1, b1 = np.split(y, 2, axis=1); a1 += x; b1 += 2 * x; return y ** 2
y = np.zeros((3, 8)); h = np.hsplit(y, 2); h[0][...] = x; h[1][...] = w; return y ** 2
y = x.copy(); v = np.lib.stride_tricks.sliding_window_view(y, 2, axis=1); y[0, 1] = 7.0; return v.sum(-1) * 2
y = x.copy(); v = np.lib.stride_tricks.as_strided(y, (3, 2), (32, 8)); return v * v
y = x.copy(); np.fill_diagonal(y, w[0]); return y * x
y = x.copy(); np.fill_diagonal(y, w[:3]); return y * x
y = x.copy(); np.fill_diagonal(y.T, 0); return y * x
y = x.copy(); np.put(y, [0, 5], w[:2]); return y * x
y = x.copy(); y.put([0, 5, 5], w[:3]); return y * x
y = x.copy(); np.place(y, y > 1, w); return y * x
y = x.copy(); np.putmask(y, y > 1, y * 2); return y * x
y = x.copy(); np.copyto(y, w); return y * x
y = x.copy(); np.copyto(y, x * x, where=x > 1); return y
y = x.copy(); np.put_along_axis(y, np.argmax(y, 1)[:, None], 0.0, 1); return y * x
y = x.copy(); y[y > 1] = 0; return y * x
y = x.copy(); y[y > 1] *= 3; return y * x
y = x.copy(); y[y > 1] = y[y > 1] ** 2; return y * w
y = x.copy(); m = y > 1; y[m], y[~m] = y[m] * 2, y[~m] * 3; return y
y = x.copy(); y[0][1] = 5; return y * x
y = x.copy(); y[[0, 0, 1]] += 1; return y * x
y = x.copy(); np.add.at(y, [0, 0, 1], w); return y * x
y = x.copy(); np.multiply.at(y, ([0, 0], [1, 1]), w[:2]); return y * x
y = x.copy(); np.subtract.at(y, (slice(None), [1, 1]), x[:, :2]); return y * x
y = x.copy(); np.maximum.at(y, [0, 0], w); return y * x
y = x.copy(); np.negative.at(y, [0, 2]); return y * x
y = np.zeros(5); np.add.at(y, [0, 1, 1, 4], w); return y ** 2
y = x.copy(); y.fill(w[0]); return y * x
y = x.copy(); y.flat[3] = w[1]; return y * x
y = x.copy(); y.flat = w; return y * x
y = x.copy(); y.flat[[1, 5]] = w[:2]; return y * x
return np.array([v * 2 for v in x.flat])
y = x.copy(); y.shape = (4, 3); y[0] = 1; return y * y
y = x.copy(); y.resize((2, 6)); return y * 2
y = x.copy(); y.real[0] = w; return y * x
y = x.copy(); y = y.astype(float, copy=False); y[0] = 0; return y * x
y = x.copy(); y.setflags(write=False)\ntry: y[0] = 1\nexcept ValueError: return y * 2\nreturn y
y = np.broadcast_to(w, (3, 4))\ntry: y[0] = 1\nexcept ValueError: return y * x\nreturn y
y = np.broadcast_to(w, (3, 4)).copy(); y[0] = 1; return y * x
p, q = np.broadcast_arrays(x, w); return p * q
y = x.copy(); s = y[0, 0]; y[0, 0] = 9; return y * s
y = x.copy(); s = y[0, 0, ...]; y[0, 0] = 9; return y * s
y = x.copy(); s = y[0, 0]; s += 1; return y * s
s = x.sum(); t = s; s *= 2; return s + t * t
s = x.sum(keepdims=True); t = s; s *= 2; return s + t * t
y = x.copy(); z = y.T.copy(); z[0] = 0; return y * z.T
y = x.T * 2; r = y.reshape(-1); r[0] = 0; return y * x.T
y = x.T * 2; r = y.ravel(order="K"); r[0] = 0; return y * x.T
y = (x * 2).reshape(4, 3, order="F"); return y * a[:, :3]
y = x.copy(order="F"); r = y.reshape(-1); r[0] = 5; return y * x
y = np.asfortranarray(x); r = y.ravel("K"); return r * r
y = x.copy(); c = np.ascontiguousarray(y.T); c[0] = 0; return y * c.T
y = x.copy(); c = np.ascontiguousarray(y); c[0] = 0; return y * x
y = x.copy(); b = [y[k] for k in range(3)]; b[0][...] = b[1]; return y * w
y = x.copy(); r = np.rot90(y); r[0] = 0; return y * x
y = x.copy(); r = np.flip(y); r[0, 0] = 4; return y * x
y = x.copy(); np.squeeze(y[:, :1])[0] = 2; return y * x
y = np.zeros((2, 3, 4)); y[0], y[1] = x, x * 2; v = y.transpose(2, 0, 1); v[0] = 1; return y.sum(0) * x
y = x.copy(); u = y[1:3]; v = y[0:2]; u += v; return y
y = x.copy(); u = y[1:3]; v = y[0:2]; v *= 2; u *= 3; return y
y = x.copy(); memo = {}; memo["k"] = y; y += 1; return memo["k"] * x
y = x.copy(); y @= a; return y
y = x.copy(); y //= 0.3; return y * x
y = x.copy(); y %= 0.7; return y * x
y = x.copy(); y **= 2; return y
y = x.copy(); y **= w; return y
y = x.copy(); y /= y.sum(1, keepdims=True); return y
def f2(b): b[0] = 0\ny = x.copy(); f2(y); return y * x
y = x.copy(); del x; return y * y
# --- dtypes and promotion
x.astype("float32") * 2
x.astype(np.float32).astype(np.float64) * w
x.astype("float16").sum()
x * np.float32(2)
x.astype("float32") * np.float64(2)
x.astype("float32") * 2.5
x.astype("float32") + w
x.astype(int) * w
(x * 10).astype(np.int64) * w
np.rint(x) * x
x * True
x * np.arange(4)
x * (x > 1)
(x > 1) * w
(x > 1).astype(float) * x
m = (x > 1).astype(x.dtype); m *= x; return m
m = np.zeros((3, 4), bool); m[0] = True; return np.where(m, x, w)
c = x + 1j * w; return (c * c.conj()).real
c = np.zeros(4, complex); c.real = w; c.imag = x[0]; return np.abs(c)
c = np.zeros(4, complex); c.real[1:] += w[1:]; c.imag[...] = x[0]; return (c ** 2).imag
c = x.astype(complex); return np.angle(c * (1 + 2j))
c = np.exp(1j * x); return c.real * c.imag
np.real(x) * np.imag(x + 1j * w)
y = np.zeros((3, 4), np.float32); y[...] = x; return y * 2
y = np.zeros((3, 4), int); y[...] = x; return y * w
y = x.copy(); y[0] = [1, 2, 3, 4]; return y * x
y = x.copy(); y[0] = [w[0], 2, w[1], 4]; return y * x
np.array([w[0], w[1] * 2])
np.array([[w[0], 1], [2, w[1]]]) * 3
np.array([w, x[0], 2 * w])
np.asarray([x[0], w], dtype="float32")
np.stack([x[0], w, np.ones(4)])
np.array(w[0]) * 2
np.float64(w[0]) * x
np.float32(w[0]) * x
float(w[0]) * x
int(w[0] * 10) * x
complex(w[0]).real * x
w[0].item() * x
w.tolist()[0] * x
np.array(w.tolist()) * x
x.astype(np.longdouble) * 2
x.astype(object) * 2
np.array([x], dtype=object)[0] * 2
x.view(np.int64).view(np.float64) * 2
x.view("float32")[:, ::2] * 1.0
x.tobytes() and np.frombuffer(x.tobytes()).reshape(3, 4) * 2
np.frombuffer(bytearray(x.tobytes())).reshape(3, 4) * 2
np.fromstring(" ".join(str(v) for v in w), sep=" ") * 2
np.array([float(str(v)) for v in w]) * 2
np.array([float(f"{v:.17g}") for v in w]) * 2
np.array([float(repr(v).split("(")[-1].rstrip(")")) for v in w]) * 2
np.array([eval(np.array2string(w, separator=",", precision=17))]) * 2
x.__array__() * 2
np.array(memoryview(x)) * 2
x.data.tolist() and np.array(x.data) * 2
np.ctypeslib.as_array(x.ctypes.data_as(__import__("ctypes").POINTER(__import__("ctypes").c_double)), (3, 4)) * 2
np.from_dlpack(x) * 2
pickle.loads(pickle.dumps(x)) * 2
copy.deepcopy(x) * 2
copy.copy(x) * w
copy.deepcopy([x, {"k": w}])[1]["k"] * x
np.load(_saved(x)) * 2
struct.unpack("d", struct.pack("d", w[0]))[0] * x
array.array("d", w)[1] * x
json.loads(json.dumps(w.tolist()))[0] * x
decimal.Decimal(float(w[0])) and float(decimal.Decimal(float(w[0]))) * x
fractions.Fraction(w[0]).limit_denominator(10**12).__float__() * x
statistics.mean(w) * x
math.exp(w[0]) * x
math.fsum(w) * x
math.hypot(*w) * x
cmath.exp(w[0]).real * x
sum(w) * x
max(w) * x
min(x[0]) * x
sorted(w)[1] * x
round(w[0], 3) * x
abs(w[0]) * x
pow(w[0], 2) * x
divmod(w[0], 0.3)[1] * x
hash(w[0]) * 0 + x
{w[0]: 1} and x * 2
bool(w[0]) * x
[v for v in w if v > 1][0] * x
functools.reduce(lambda p, q: p * q, w) * x
list(map(lambda v: v * 2, w))[0] * x
np.array(list(zip(w, w * 2))) * 2
operator.add(x, w)
operator.iadd(x.copy(), w)
operator.matmul(x, a)
# --- callables, iterators, wrappers
np.vectorize(lambda v: v * 2)(x)
np.vectorize(math.sin)(x)
np.frompyfunc(lambda v: v * 2, 1, 1)(x).astype(float)
np.apply_along_axis(lambda r: r / r.sum(), 1, x)
np.apply_along_axis(np.sort, 0, x)
np.apply_along_axis(lambda r: r.sum() * w, 1, x)
np.apply_over_axes(np.sum, x, [0, 1])
np.piecewise(x, [x < 1, x >= 1], [lambda v: v * v, lambda v: 2 * v])
np.select([x < 0.5, x < 1], [x, x * 2], default=w)
np.choose(np.array([0, 1, 0, 1]), [w, x[0]])
np.fromiter((v * 2 for v in w), float)
np.fromiter(w, float) * 2
np.fromfunction(lambda i, j: i * j + x, (3, 4))
np.array([np.nditer(w)]) and np.array([v * 2 for v in np.nditer(w)])
y = x.copy()\nwith np.nditer(y, op_flags=["readwrite"]) as it:\n    for v in it: v[...] = 2 * v\nreturn y
np.array([v * 2 for _, v in np.ndenumerate(w)])
y = np.zeros((3, 4))\nfor i in np.ndindex(3, 4): y[i] = x[i] ** 2\nreturn y
np.array([r @ w for r in x])
y = np.empty(3)\nfor i, r in enumerate(x): y[i] = r @ w\nreturn y
it = iter(w); next(it); return next(it) * x
gen = (r * 2 for r in x); return np.stack(list(gen))
functools.partial(np.multiply, 2)(x)
functools.partial(np.zeros, (3, 4))() + x
z = functools.partial(np.zeros, (3, 4))(); z[...] = x; return z * 2
_cached_table(4) * x
t = _cached_table(4); z = t + x; z *= 2; return z
_closure()(x)
_default(x)
_kwdefault(x)
_Module.np.zeros((3, 4)) + x
z = _Module.np.zeros((3, 4)); z[...] = x; return z * 2
z = _held["zeros"]((3, 4)); z += x; return z * 2
z = zeros((3, 4)); z += x; return z * 2
import numpy as n; z = n.zeros((3, 4)); z += x; return z * 2
from numpy import ones; z = ones((3, 4)); z *= x; return z * 2
import numpy.linalg as la; return la.norm(x, axis=1)
from numpy.linalg import inv; return inv(a)
z = importlib.import_module("numpy").zeros((3, 4)); z += x; return z * 2
z = sys.modules["numpy"].zeros((3, 4)); z += x; return z * 2
z = __import__("numpy").zeros((3, 4)); z += x; return z * 2
z = np.ndarray((3, 4)); z[...] = x; return z * 2
z = eval("np.zeros((3, 4))"); z += x; return z * 2
exec("q = np.zeros((3, 4)); q += x", g := {"np": np, "x": x}); return g["q"] * 2
(lambda v: v * 2)(x)
_Sub(x) * 2
x.view(_Sub) * 2
np.ma.masked_greater(x, 1).filled(0) * w
np.ma.array(x, mask=x > 1).sum() * w
np.ma.masked_where(x > 1, x).mean() * w
np.matrix(x) * 2
np.asmatrix(x) @ a
np.rec.array(x) * 2
z = np.zeros(3, dtype=[("p", float), ("q", float)]); z["p"] = x[:, 0]; return z["p"] * 2
np.poly1d(w)(x)
np.polyval(w, x)
np.polynomial.polynomial.polyval(x, w)
np.char.add("a", "b") and x * 2
isinstance(x, np.ndarray) * x
type(x) is np.ndarray and x * 2 or x * 3
(type(x) == type(w)) * x
isinstance(w[0], float) * x
isinstance(w[0], np.floating) * x
np.isscalar(w[0]) * x
np.ndim(x) * x
len(x) * x + x.shape[1] + x.size + x.ndim + x.itemsize + x.nbytes
x.dtype.type(2) * x
np.finfo(x.dtype).eps * x + x
x.__class__(shape=(3, 4), buffer=x.copy()) * 2
x.strides[0] * x
x.flags.c_contiguous * x
x.T.flags.f_contiguous * x
x.base is None and x * 2 or x * 3
hasattr(x, "tensor") * x + x
getattr(x, "nothing", 2) * x
np.shares_memory(x, x[0]) * x
np.may_share_memory(x, w) + x
np.array_equal(x, x) * x
np.allclose(x, x) * x
x.any() * x + x.all()
(x == x).all() * x
1.0 in x or x * 2
x.tolist() == x.tolist() and x * 2
if x.max() > 1: return x * 2\nreturn x * 3
while x.sum() < 1e3: x = x * 2\nreturn x
np.argmax(x) * x
x[np.argsort(x[:, 0])] * w
x[np.lexsort((x[:, 0],))] * w
x[x[:, 0] > 0.5]
x[np.nonzero(x > 1)]
x[np.where(x > 1)]
x[tuple(np.argwhere(x > 1).T)]
np.extract(x > 1, x)
np.compress([True, False, True], x, axis=0)
x.compress([True, False], axis=1)
np.take(x, [0, 2], axis=1)
x.take([0, 5])
np.take(x, [9, -1], mode="wrap")
np.take_along_axis(x, np.argsort(x, 1), 1)
np.searchsorted(np.sort(w), 1.0) * x
np.digitize(x, [0.5, 1]) * x
np.unique(x)
np.unique(x)[::-1] * 2
np.histogram(x)[0] * 1.0
np.histogram(x, weights=x)[0] * 1.0
np.bincount([0, 1, 1, 2], weights=w)
np.count_nonzero(x > 1) * x
np.partition(x, 1, axis=1) * w
x[:, np.newaxis] * w[:, None]
x[..., 0] * x[..., -1]
x[1, :][None] + x[:, [0]]
x[[0, 1], [1, 2]] * 2
x[:, [0, 1], None] * w[:2, None]
x[np.ix_([0, 1], [2, 3])]
np.arange(24.).reshape(2, 3, 4)[0, :, [0, 1]] * x[:2, :3]
z = np.ones((2, 3, 4)) * x; return z[0, :, [0, 1]]
z = np.ones((2, 3, 4)) * x; z[0, :, [0, 1]] = w[:2, None]; return z
x[True]
x[np.array(1)] * w
x[-1, -2] * w
x[()]
x[slice(None, None, -1)] * w
"""
