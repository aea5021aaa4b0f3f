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
"""
