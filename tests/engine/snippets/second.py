"""A second set, thought up after the first one passed; see `first`."""

# ruff: noqa: E501 - a snippet is a line
TEXT = r"""
# --- threads, contexts, time
with concurrent.futures.ThreadPoolExecutor(2) as pool: return np.stack(list(pool.map(lambda r: r * 2, x)))
with concurrent.futures.ThreadPoolExecutor(1) as pool: return pool.submit(np.tanh, x).result()
out = []; t = threading.Thread(target=lambda: out.append(x * w)); t.start(); t.join(); return out[0]
out = []; c = contextvars.copy_context(); t = threading.Thread(target=c.run, args=(lambda: out.append(x * w),)); t.start(); t.join(); return out[0]
y = x.copy(); t = threading.Thread(target=y.__setitem__, args=(0, 1.0)); t.start(); t.join(); return y * x
y = x.copy(); t = threading.Thread(target=lambda: y.sort()); t.start(); t.join(); return y * w
y = x.copy(); t = threading.Thread(target=lambda: y[0].__imul__(2)); t.start(); t.join(); return y * w
async def g(): return x * 2\nreturn asyncio.run(g())
q = queue.Queue(); q.put(x); return q.get() * 2
return contextvars.copy_context().run(lambda: x * w)
# --- gathering and scattering by odd means
z = np.zeros((3, 4)); z[np.arange(3), [1, 2, 3]] = x[np.arange(3), 0]; return z * 2
z = np.zeros((3, 4)); z[::2] = x[1:]; return z * z
z = np.zeros((3, 4)); z[:, ::-1] = x; return z * w
z = np.zeros((3, 4)); z.T[...] = x.T; return z * w
z = np.zeros((3, 4)); z.flat[:] = x.ravel(); return z * w
z = np.zeros((3, 4)); z.reshape(4, 3)[:] = x.T; return z * w
z = np.zeros((3, 4)); z.diagonal().setflags(write=True); return z + x
z = np.zeros(12); z.reshape(3, 4)[1:, 1:][0] = x[0, 1:]; return z * 2
z = np.ones((4, 4)); z[np.triu_indices(4, 1)] = 0; return z * a
z = np.zeros((4, 4)); z[np.diag_indices(4)] = w; return z @ a
z = np.zeros((4, 4)); i, j = np.tril_indices(4); z[i, j] = a[i, j]; return z @ z.T
z = np.zeros((4, 4)); np.einsum("ii->i", z)[:] = w; return z @ a
z = a.copy(); np.einsum("ii->i", z)[...] += 1; return z @ a
z = np.identity(4); z *= w; return z @ a
z = np.eye(4, k=1); z[0] += w; return z @ a
z = np.full((3, 4), w); z[0] = 0; return z * x
z = np.full(4, w[0]); z[0] = w[1]; return z * x
z = np.full_like(x, w[2]); z[1] *= 2; return z * x
z = np.zeros_like(x); z += w; z -= x; return z * z
z = np.ones_like(x, dtype=int); z[0] = 2; return z * x
z = np.empty_like(x); z.fill(0.5); z[1] = x[1]; return z * z
z = np.tile(w, (3, 1)); z[0] = 0; return z * x
z = np.repeat(w, 2); z[::2] = 0; return z ** 2
z = np.r_[w, 1.0, x[0]]; return z * z
z = np.c_[w, x[0]]; return z * z
z = np.r_[0:3, w]; return z * z
z = np.r_["0,2", w, x]; return z * 2
z = np.s_[1:3]; return x[z] * 2
z = np.mgrid[0:3, 0:4][0] * x; return z
g = np.meshgrid(w, x[:, 0]); g[0] *= 2; return g[0] * g[1]
g, h = np.meshgrid(w, x[:, 0], indexing="ij", copy=False); return g * h
g = np.indices((3, 4)); return (g * x).sum(0)
g = np.ogrid[0:3, 0:4]; return x * g[0] + g[1]
np.pad(x, 1)
np.pad(x, ((0, 1), (1, 0)), mode="edge") * 2
np.pad(x, 1, mode="reflect")
np.pad(x, 1, mode="wrap") ** 2
np.pad(x, 1, mode="linear_ramp", end_values=1)
np.pad(x, 1, mode="mean")
np.pad(x, 1, constant_values=w[0])
np.pad(x, 1, constant_values=((w[0], 1), (2, w[1])))
np.pad(x, 1, mode="reflect", reflect_type="odd")
np.insert(x, 1, w, axis=0) * 2
np.delete(x, 1, axis=1) * 2
np.append(x, [w], axis=0) ** 2
np.append(x, w) ** 2
np.resize(w, (3, 3)) * 2
np.trim_zeros(np.pad(w, 2)) * 2
np.ediff1d(w) * np.ediff1d(w)
np.diff(x, axis=0, prepend=0) * w
np.diff(x, n=2) ** 2
np.gradient(x, 0.5, axis=1) * w
np.gradient(w, x[0].cumsum())
np.trapezoid(x, dx=0.3, axis=1)
np.trapezoid(w, x[0].cumsum())
np.interp(x, [0, 1, 2], [0, 1, 4]) * w
np.interp(0.5, w.cumsum(), x[0]) * x
np.interp([0.1, 1], [0, 2, 4], w[:3])
np.cross(x[:, :3], x[:, 1:])
np.kron(w, x[0])
np.outer(w, x)
np.inner(x, x)
np.vdot(x, x) * x
np.tensordot(x, a, axes=([1], [0]))
np.tensordot(x, x, 2) * x
np.einsum("ij,jk,k->i", x, a, w, optimize=True)
np.einsum("...j,j", x, w)
np.einsum(x, [0, 1], w, [1], [0])
np.einsum("ij->ji", x) * w[:, None]
np.einsum("ii", a) * x
np.dot(x, a, out=np.zeros((3, 4))) * x
y = np.zeros((3, 4)); np.dot(x, a, out=y); return y * x
y = np.zeros((3, 4)); np.matmul(x, a, out=y); return y * x
y = np.zeros(3); np.sum(x, axis=1, out=y); return y ** 2
y = np.zeros(3); x.sum(1, None, y); return y ** 2
y = np.zeros(3); np.mean(x, 1, out=y); return y[:, None] * x
y = np.zeros((3, 4)); np.cumsum(x, 1, out=y); return y * x
y = np.zeros((3, 4)); np.clip(x, 0.5, 1, out=y); return y * x
y = x.copy(); np.clip(y, 0.5, 1, out=y); return y * x
y = x.copy(); y.clip(0.5, 1, y); return y * x
y = np.zeros((2, 3, 4)); np.stack([x, x * 2], out=y); return y.prod(0)
y = np.zeros((6, 4)); np.concatenate([x, x], out=y); return y * y
y = np.zeros((3, 4)); np.take(x, [0, 1, 2], axis=0, out=y); return y * y
y = x.copy(); np.nan_to_num(y, copy=False); return y * y
y = np.zeros((3, 4)); np.add(x, w, out=y, where=x > 1); return y * x
y = np.ones((3, 4)); np.divide(1, x, out=y, where=x > 1); return y * x
y = np.ones((3, 4)); np.log(x, y, where=x > 1); return y * x
y = np.zeros((3, 4), np.float32); np.add(x, w, out=y, casting="same_kind"); return y * 1.0
m, e = np.frexp(x); return np.ldexp(m, e) * x
f, i = np.modf(x * 2); return f * i
q, r = np.divmod(x, 0.3); return q * r
q = np.zeros((3, 4)); r = np.zeros((3, 4)); np.divmod(x, 0.3, out=(q, r)); return q * r
np.add.reduce(x) * w
np.add.reduce(x, axis=(0, 1)) * w
np.multiply.reduce(x, axis=1, keepdims=True) * x
np.maximum.reduce(x, axis=None) * x
np.maximum.reduce([w, x[0], x[1]])
np.logaddexp.reduce(x, axis=1)
np.subtract.reduce(x, axis=1)
np.hypot.reduce(x, axis=1)
np.add.reduce(x, axis=1, where=x > 1, initial=w[0])
np.minimum.reduce(x, axis=1, initial=0.5)
np.maximum.accumulate(x, axis=1) * w
np.add.accumulate(x) * w
np.multiply.accumulate(x, axis=1)
np.divide.accumulate(x, axis=1)
np.add.reduceat(x, [0, 2, 1], axis=1)
np.multiply.outer(w, w) * a
np.subtract.outer(w, w) ** 2
np.sum(x, where=x > 1) * x
np.mean(x, where=x > 1) * x
np.max(x, axis=1, initial=0.9) * x[:, 0]
np.var(x, axis=1, ddof=1)
np.std(x, axis=0, keepdims=True) * x
np.average(x, axis=1, weights=w)
np.average(x, weights=x * 2)
np.median(x, axis=1)
np.quantile(x, [0.1, 0.6], axis=1)
np.percentile(x, 30)
np.quantile(x, 0.3, method="lower")
np.ptp(x, axis=1)
np.nansum(np.where(x > 1, np.nan, x)) * w
np.nanmean(np.where(x > 1.9, np.nan, x), axis=0)
np.nanmax(x, axis=1) * 2
np.cov(x)
np.corrcoef(x)
np.cumprod(x, axis=0)
np.sort(x, axis=None) * 2
np.sort_complex(w).real * 2
np.linalg.norm(x, ord=1, axis=1)
np.linalg.norm(x, "nuc")
np.linalg.norm(a, 2)
np.linalg.matrix_power(a, 3)
np.linalg.multi_dot([x, a, a])
np.linalg.pinv(x)
np.linalg.solve(a, w)
np.linalg.lstsq(x.T, w, rcond=None)[0]
np.linalg.eigh(a)[0]
q, v = np.linalg.eigh(a, UPLO="U"); return (v * np.log(q)) @ v.T
np.linalg.cholesky(a)
np.linalg.eigvals(a @ np.diag(w)).real
np.linalg.slogdet(a)[1] * x
np.linalg.svd(x)[1]
np.linalg.svd(a)[0] ** 2
np.linalg.tensorsolve(a.reshape(2, 2, 2, 2), x[:2, :2])
np.linalg.cond(a) * x
np.trace(a) * x
np.fft.fft(x).real * np.fft.fft(x).imag
np.fft.rfft(x, axis=0, norm="ortho").imag
np.abs(np.fft.fft2(x)) ** 2
np.fft.irfft(np.fft.rfft(w) * np.fft.rfft(x[0]), 4)
np.fft.fftshift(x) * w
np.convolve(w, x[0], "same")
np.correlate(w, x[0], "full")
np.unwrap(x * 4)
np.sinc(x) * w
np.i0(x)
np.heaviside(x - 1, 0.5) * x
np.copysign(x, -w) * x
np.nextafter(x, 2) * w
np.spacing(x) * w
np.float_power(x, w)
np.cbrt(x) + np.exp2(x) + np.log2(x)
np.hypot(x, w) * np.arctan2(x, w)
np.vander(w, 3)
np.polyfit(x[0], w, 1)
np.roots(w).real
np.apply_along_axis(np.convolve, 1, x, w)
np.lib.stride_tricks.sliding_window_view(w, 2) @ w[:2]
np.array_split(w, 3)[1] * 2
np.packbits(x > 1) * 1.0
np.where(x > 1)[0] * 1.0
np.require(x, requirements="W") * 2
np.copy(x, order="F") * w
np.asarray(x, dtype=complex).conj() * 1j
np.linspace(w[0], x[0, 0], 4) * w
np.arange(w[0], 5, 1.0)
np.geomspace(w[0], w[1], 3)
np.random.default_rng(0).permutation(x) * w
np.random.default_rng(0).normal(w) * x
y = x.copy(); np.random.default_rng(0).shuffle(y); return y * w
y = w.copy(); np.random.default_rng(0).shuffle(y); return y * x
y = w.copy(); random.Random(0).shuffle(y); return y * x
y = x.copy(); np.random.seed(0); np.random.shuffle(y); return y * w
np.random.RandomState(0).choice(w, 2) * 2
random.Random(0).choice(w) * x
heapq.nlargest(2, w)[1] * x
bisect.bisect(sorted(w), 1.0) * x
collections.Counter(w.tolist()) and x * 2
collections.deque(w)[1] * x
list(itertools.accumulate(w))[-1] * x
[*map(operator.itemgetter(1), x)][0] * w
f"{x.shape} {x.dtype}" and x * 2
print(x.shape, file=io.StringIO()) or x * 2
str(x) and x * 2
min(x, key=lambda r: r[0]) * w
sorted(x, key=lambda r: r.sum())[0] * w
any(v > 1 for v in w) * x
string.Template("$v").substitute(v=w[0]) and float(string.Template("$v").substitute(v=w[0])) * x
f"{w[0]!r}" and x * 2
"%s" % w[0] and float("%.17g" % w[0]) * x
dataclasses.make_dataclass("D", ["v"])(x).v * 2
dataclasses.asdict(dataclasses.make_dataclass("D", ["v"])(x))["v"] * 2
weakref.ref(x)() * 2
gc.collect() * 0 + x
y = x.copy(); del y.real\nreturn x
y = x.copy(); y.dtype = np.int64; return y.view(float) * 2
y = x.copy(); y.byteswap(inplace=True); return y.byteswap() * 2
y = x.copy(); y.T.shape = (12,); return y
y = x.T.copy(); y.shape = (12,); return y * 2
y = x.copy(); y.strides; y.partition(1); return y * w
y = x.copy(); y.itemset(0, 5) if hasattr(y, "itemset") else None; return y * x
y = x.copy(); y.put([0], w[:1], mode="wrap"); return y * x
y = x.copy(); y.choose([x, x, x]) if False else None; return y
y = x.copy(); y[...] = y[::-1]; return y * w
y = x.copy(); y[:] = y.T.reshape(3, 4); return y * w
y = x.copy(); y[1], z = 0, y[1].sum(); return y * z
y = x.copy(); u = y[0]; y = y * 2; u += 1; return y * x
y = x.copy(); u = y[y > 1]; u *= 0; return y * x
y = x.copy(); u = y[[0, 1]]; u *= 0; return y * x
y = x.copy(); u = y[0:2, [0, 1]]; u[...] = 0; return y * x
y = x.copy(); u = np.real(y); u[0] = 1; return y * x
y = x + 0j; u = np.imag(y); u[0] = w; return np.abs(y) ** 2
y = x + 1j * x; y.imag = 0; return (y * y).real
y = x + 1j * x; y.real[y.real > 1] = 0; return (y * y).imag
y = x + 1j * x; v = y.view(float); v[0] = 1; return y.real
y = x + 1j * x; y *= 1j; return y.real
y = x.copy(); y = np.where(y > 1, y, 0.0, ); y[0] = 1; return y * x
y = x.copy(); np.subtract(y, y.mean(0), y); return y * x
y = x.copy(); np.negative(y[0], y[1]); return y * x
y = x.copy(); np.cumsum(y, axis=0, out=y); return y * x
y = x.copy(); y.cumsum(1, out=y); return y * x
y = x.copy(); np.maximum(y, 1, out=y[...]); return y * x
y = x.copy(); y.sum(0, out=y[0]); return y * x
y = x.copy(); np.sqrt(y, where=y > 1, out=y); return y * x
class C:\n    k = np\n    def run(self, v): return self.k.zeros((3, 4)) + v\nreturn C().run(x) * 2
class C:\n    def __init__(self, v): self.v = v\n    def __array__(self, dtype=None, copy=None): return np.asarray(self.v)\nreturn np.asarray(C(x)) * 2
class C(list): pass\nreturn np.array(C([w, w])) * 2
class C:\n    def __init__(self, v): self.v = v\n    def __len__(self): return 3\n    def __getitem__(self, k): return self.v[k]\nreturn np.stack(C(x)) * 2
class C:\n    __array_ufunc__ = None\n    def __radd__(self, o): return o * 2\nreturn x + C()
class C:\n    def __array_ufunc__(self, u, m, *i, **k): return u(*(v.v if isinstance(v, C) else v for v in i)) * 2\n    v = 3.0\nreturn x * C()
@np.vectorize\ndef g(v): return v * v\nreturn g(x)
@functools.lru_cache\ndef g(n): return np.ones(n)\ny = g(4); y += w; return g(4) * x
@functools.lru_cache\ndef g(v): return v * 2\nreturn g(w[0]) * x
@functools.singledispatch\ndef g(v): return 1\n@g.register\ndef _(v: np.ndarray): return v * 2\nreturn g(x)
def g():\n    y = yield x * 2\n    yield y + 1\nk = g(); v = next(k); return k.send(v)
@contextlib.contextmanager\ndef g():\n    yield np.zeros((3, 4))\nwith g() as y:\n    y += x\nreturn y * 2
def g(v, k=3): return v if k == 0 else g(v * w, k - 1)\nreturn g(x)
def g():\n    import numpy\n    return numpy.zeros((3, 4))\ny = g(); y[...] = x; return y * 2
def g():\n    from numpy import linalg, float32\n    return linalg.inv(a), float32\nreturn g()[0] * 2
match x:\n    case np.ndarray(): return x * 2\nreturn x
try: x[5]\nexcept IndexError: return x * 2
try: x + np.ones(7)\nexcept ValueError: return x * 2
try: x.nothing\nexcept AttributeError: return x * 2
try: np.linalg.inv(x)\nexcept np.linalg.LinAlgError: return x * 2
with np.errstate(divide="raise"):\n    try: x / (x - x)\n    except FloatingPointError: return x * 2\nreturn x
assert x.ndim == 2 and x.dtype == float and x.dtype.kind == "f"; return x * 2
global _kept; _kept = x; return _kept * 2
a1, *rest = x; return rest[0] * a1
(p, q, r) = x; p += q; return x * r
x[0] += 1; x *= w; return x * x
w[w > 1] = 1; return x * w
x.T[:] = 1; return x * w
x, w = w, x; return x * w
np.testing.assert_allclose(x, x); return x * 2
np.savetxt(io.StringIO(), x); return x * 2
np.set_printoptions(precision=8); return x * 2
np.seterr(all="ignore"); return x * 2
np.shape(x)[0] * x + np.size(x)
np.broadcast(x, w).size * x
np.broadcast_shapes(x.shape, w.shape)[0] * x
np.result_type(x, 1.0).itemsize * x
np.isclose(x, 1.0) * x
np.isfinite(x) * x
np.isreal(x) * x
np.logical_and(x > 1, x < 2) * x
np.bitwise_or(x > 1, x < 0.5) * x
~(x > 1) * x
np.signbit(x - 1) * x
np.fmod(x, 0.3) * w
np.nan_to_num(x / (x > 1), posinf=3.0) * w
np.fix(x * 3) * w
np.floor_divide(x, 0.3) * x
np.lcm.reduce([2, 3]) * x
np.gcd(4, 6) * x
"""
