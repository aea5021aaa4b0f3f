"""A third set: what is changed after it was used, and parts of views; see `first`."""

# ruff: noqa: E501 - a snippet is a line
TEXT = r"""
m = np.asarray(_mask); y = np.where(m, x, 2 * x); m[:] = False; return y
m = _mask.copy(); y = np.where(m, x, 2 * x); m[:] = False; return y
m = _mask.copy(); y = x[m]; m[:] = False; return y * 2
m = _mask.copy(); y = x.copy(); y[m] = 0; m[:] = False; return y * x
k = _index.copy(); y = x[k]; k[:] = 0; return y * w
k = _index.copy(); y = np.take(x, k, 0); k[:] = 0; return y * w
k = _index.copy(); y = x.copy(); np.add.at(y, k, 1.0); k[:] = 0; return y * x
k = _index.copy()[0, ...]; y = x[k, 1]; k[...] = 1; return y * w
k = _index.copy()[0, ...]; y = x[k]; k[...] = 1; return y * w
c = _table.copy(); y = x * c; c[:] = 0; return y * x
c = _table.copy(); y = x @ np.diag(c); c[:] = 0; return y * x
c = _table.copy(); y = np.einsum("ij,j->ij", x, c); c[:] = 0; return y
c = _table.copy(); y = np.maximum(x, c); c[:] = 9; return y * x
c = _table.copy(); y = np.clip(x, c - 1, c); c[:] = 9; return y * x
c = _table.copy(); y = np.interp(x, c, c * c); c[:] = 9; return y * x
c = _table.copy(); y = x.copy(); y[0] = c; c[:] = 9; return y * x
c = _table.copy(); y = np.concatenate([w, c]); c[:] = 9; return y * y
c = _table.copy(); y = np.array([w, c]); c[:] = 9; return y * y
c = _table.copy(); y = np.stack([w, c]); c[:] = 9; return y * y
c = _table.copy(); y = np.power(x, c); c[:] = 9; return y
c = np.ones(4); y = x * c; c[0] = 0; return y * x
c = np.ones(4); d = c[1:]; y = x * c; d[:] = 0; return y * x
c = np.arange(4); y = x * c; c += 1; return y * x
c = w > 1; y = x * c; c[:] = False; return y * x
z = x + 1j * x; z.T.real[0] = w[:3]; return (z * z).imag
z = x + 1j * x; z[0].imag[1:] = w[1:]; return (z * z).real
z = x + 1j * x; z.real.T[1] *= 2; return (z * z).imag
z = x + 1j * x; r = z.real; r += z.imag; return (z * z).imag
z = x + 1j * x; r = z.real.copy(); r += 1; return (z * z).imag
z = x + 1j * x; z.real.ravel()[0] = 5; return (z * z).imag
z = x + 1j * x; z.real.sort(); return (z * z).imag
z = x + 1j * x; np.exp(z.imag, out=z.real); return (z * z).imag
z = (x + 1j * x)[0, 0]; return z.real * z.imag * x
z = x.astype("complex64"); z.real = 2; return (z * w).real
y = x.copy(); v = y[::2]; y *= 2; return v * v
y = x.copy(); v = y.T[1:]; y[...] = y ** 2; return v * v
y = x.copy(); v = y[1]; u = v[2:]; y += 1; v *= 2; return u * u
y = x.copy(); v = y[1]; del y; v *= 2; return v * w
y = x.copy(); v = y.ravel()[3:7]; v.sort(); return y * x
y = x.copy(); v = np.split(y, 3); v[0][...] = v[1] + v[2]; return y * x
y = x.copy(); v = y[:, 1:3]; v[v > 1] = 0; return y * x
y = x.copy(); v = y[y[:, 0].argsort()]; v[0] = 0; return y * v
y = x.copy(); y[y.argmax(0), np.arange(4)] = w; return y * x
y = x.copy(); y[np.ix_([0, 2], [1, 3])] *= 2; return y * x
y = x.copy(); y[..., -1] = y[..., 0] * y[..., 1]; return y * x
y = x.copy(); y[1:, :2] -= y[:-1, 1:3]; return y * x
y = x.copy(); y[:, None][0, 0] = w; return y * x
y = x.copy(); y.reshape(2, 6)[1] = 3; return y * x
y = x.copy(); y.reshape(2, 6).T[1] += w[:2]; return y * x
y = x.copy(); y.swapaxes(0, 1).reshape(-1)[0] = 9; return y * x
for k in range(3): x = np.concatenate([x[1:], x[:1] * w])\nreturn x
h = np.zeros(4)\nfor r in x: h = np.tanh(h * w + r)\nreturn h
h = np.zeros((4, 4))\nfor k, r in enumerate(x): h[k + 1] = np.tanh(h[k] * w + r)\nreturn h
s = 0.0\nfor r in x:\n    for v in r: s += v * v\nreturn s
s = np.float64(0)\nfor v in w: s += v ** 2\nreturn s * x
s = np.zeros(()); s += w.sum(); return s * x
s = np.zeros(1)[0]; s += w.sum(); return s * x
s = np.array(0.0); t = s; s += w.sum(); return t * x
out = {k: np.zeros(4) for k in "ab"}; out["a"] += w; out["b"][:] = out["a"] * 2; return out["b"] * x
out = [np.zeros(4)] * 2; out[0] += w; return out[1] * x
out = [None] * 3\nfor k in range(3): out[k] = x[k] * k\nreturn np.array(out) * x
n = x.shape[0]; y = np.empty((n, n))\nfor i in range(n):\n    for j in range(n): y[i, j] = np.sum((x[i] - x[j]) ** 2)\nreturn y
p = np.exp(x - x.max(-1, keepdims=True)); p /= p.sum(-1, keepdims=True); return -np.log(p[np.arange(3), [0, 1, 2]]).mean()
d = x[:, None] - x[None]; return np.sqrt((d * d).sum(-1) + 1e-3)
u = np.lib.stride_tricks.sliding_window_view(x, (2, 2)); return np.einsum("ijkl,kl->ij", u, a[:2, :2])
q, r = np.linalg.qr(a); return np.abs(r) + q @ q.T
i = np.argmin(np.abs(x - 1), axis=1); return np.take_along_axis(x, i[:, None], 1) * w
t = np.triu(a) @ np.tril(a); return np.linalg.inv(t)
y = np.roll(x, 1, axis=1); y[:, 0] = 0; return np.cumsum(y * x, axis=0)
y = np.nanmean(x, axis=0); return (x - y) / np.nanstd(x, axis=0)
y = np.where(x > 1, np.log(x), x - 1); return y * np.sign(x - 0.7)
o = np.zeros((3, 3)); o[np.arange(3), [2, 0, 1]] = 1.0; return o @ x
y = np.searchsorted(np.cumsum(w), x); return w[np.minimum(y, 3)] * x
return np.linalg.norm(x, axis=1) / np.linalg.norm(w)
f = np.fft.fft(x, axis=1); f[:, 2:] = 0; return np.fft.ifft(f, axis=1).real * w
y = np.multiply.reduce(x, axis=1); np.divide(y, 2, out=y); return y * y
return np.heaviside(x - 1, 0) * x + np.fmax(x, w) + np.fmin(x, 1)
y = [np.outer(r, w) for r in x]; return sum(y)
a2 = a.copy(); np.fill_diagonal(a2, a2.diagonal() * 2); return np.linalg.slogdet(a2)[1]
L = np.linalg.cholesky(a); z = np.linalg.solve(L, w); return z @ z + 2 * np.log(np.diag(L)).sum()
v = np.ones(4)\nfor _ in range(3): v = a @ v; v = v / np.linalg.norm(v)\nreturn v * w
return np.histogram(x, bins=3)[1] * x[0]
return np.tensordot(x, np.stack([a, a * 2]), axes=(1, 1))
return (x[:, :, None] * a[None]).max(axis=(1, 2))
return np.vecdot(x, w) if hasattr(np, "vecdot") else x @ w
return np.unstack(x)[1] * w if hasattr(np, "unstack") else x[1] * w
return np.cumulative_sum(w) if hasattr(np, "cumulative_sum") else np.cumsum(w)
# --- views of what memory, and elements placed anew
b = np.zeros((3, 4)); np.copyto(b, x); return b * x
b = _table.copy(); np.copyto(b, w); return b * x
y = x.copy(); y.T[...] = y.T * 2; v = y[:, ::-1]; v += 1; return y * v
y = np.zeros((3, 4)); v = y.reshape(-1); u = y.T; v[:] = x.ravel(); return u * 2
y = np.zeros((3, 4)); v, u = np.split(y, [1]); v[...] = x[:1]; u += x[1:]; return y * 2
y = np.zeros((3, 4), complex); v = y.view(float); v[:, :4] = x; return y.real
y = np.zeros((3, 4), complex); r = y.real; r[...] = x; y.imag = x * 2; return np.abs(y)
y = np.zeros((4, 3)).T; y[...] = x; return y * 2
y = np.zeros((2, 3, 4)).transpose(2, 0, 1); y[:, 0] = x.T; return y * y
y = np.ones((3, 4)); np.sqrt(x / x, out=y); return y * x
y = np.ones((3, 4)); np.multiply(x / x, 1.0, out=y); z = y; y *= x; return z * w
y = np.arange(12.)[::2]; y[0] = w[0]; return y * w[0]
y = np.arange(12.); v = y[::2]; v[:4] = w; return y * y
m = np.meshgrid(w, x[:, 0], copy=False); return m[0] * m[1]
y = x.copy(); d = np.einsum('ij->ji', y); d[0] = 1; return y * x
y = x.copy(); z = np.atleast_3d(y); z[...] *= 2; return y * x
y = x.copy(); z = np.require(y, requirements=['C', 'W']); z[0] = w; return y * x
y = x.copy(); z = np.squeeze(y[None]); z += w; return y * y
y = x.copy(); z = np.broadcast_to(y, (2, 3, 4)); y *= 2; return z * z
y = x.copy(); i = iter(y); r = next(i); r[...] = 0; return y * x
y = x.copy(); y.flat[::2] = w[[0, 1, 2, 3, 0, 1]]; return y * x
y = x.T.copy().T; y.flat[1] = w[2]; return y * x
y = x.copy(); y.T.flat[1:4] = w[:3]; return y * x
y = x.astype(np.float32); v = y[0]; v += 1; return y.astype(float) * x
np.asarray(x, dtype=np.float32) * w
np.array([x, x * 2], order="F") * w
np.array(x, ndmin=3) * w
np.ascontiguousarray(x.T) * 2
np.take(x.T, [0, 2], axis=0) * 2
np.repeat(x, [1, 2, 0], axis=0) * w
np.choose(np.array([[0, 1, 1, 0]] * 3), [x, 7.0]) * x
np.pad(x, 1, mode="maximum") * 2
np.pad(x, 1, mode="edge")[:, 1:5] * w
np.pad(x, ((1, 0), (0, 0)), constant_values=1.5) * w
x.repeat(2, 0) * w
x.compress([1, 0, 1], 0) * w
x.copy("F") * w
x.reshape((4, 3), order="F") * 2
x.T.reshape(12) * 2
x.T.flatten("F") * 2
x[..., None].squeeze().swapaxes(0, 1) * 2
x.transpose(1, 0) * 2
x.sum(1, None, np.zeros(3)) * 2
b = np.zeros(3); x.take([0, 1, 2], None, b); return b * 2
np.place(x, x > 1, [1.0, 2.0]); return x * w
np.putmask(x, x > 1, w[0]); return x * w
y = np.zeros((3, 4), np.float32); np.copyto(y, x, casting="same_kind"); return y * 1.0
y = np.zeros((3, 4), int); np.copyto(y, x, casting="unsafe"); return y * w
y = np.full((3, 4), 2.0); y[1] = x[1]; y[0] = np.nan; return np.nan_to_num(y, nan=3.0) * x
y = x.copy(); y[0] = np.nan; np.nan_to_num(y, copy=False, nan=2.0); return y * x
s = w[0]; return s.T * x
s = w[0]; return (s.real + s.imag + s.conjugate()) * x
s = w[0]; return s.reshape(1) * x
s = w[0]; return s.astype(np.float32) * x
s = w[0]; return np.atleast_1d(s) * x
s = w[0]; return s.copy() * x
s = w[0]; return s.squeeze() * s.ravel() * x
s = w[0]; return s.view() * x
s = (x + 1j * x)[0, 0]; return s.imag * x
s = x.sum(); return s.sum() * s.max() * x
s = x.sum(); return np.array(s, dtype=np.float32) * x
y = x.copy(); z = y.view(y.dtype); z[0] = w; return y * x
y = x.copy(); y.setfield(w[0], float); return y * x
y = x.copy(); return y.getfield(float) * w
y = x.copy(); b = y[1].base; b[0] = 1; return y * x
"""
