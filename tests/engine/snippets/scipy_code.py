"""SciPy in recorded code; see `first`."""

TEXT = r"""
sp.erf(x) * w
sp.erfc(x) * w
sp.gammaln(x)
sp.digamma(x)
sp.psi(x)
sp.polygamma(1, x)
sp.gamma(x)
sp.expit(-x)
sp.log_expit(x)
sp.logit(x / 3)
sp.xlogy(x, w)
sp.xlogy(x - x, w) + x
sp.xlog1py(x, w)
sp.entr(x)
sp.rel_entr(x, w)
sp.kl_div(x, w)
sp.betaln(x, w)
sp.beta(x, w)
sp.ndtr(x)
sp.log_ndtr(x)
sp.erfinv(x / 3)
sp.exprel(x)
sp.i0(x) + sp.i1(x)
sp.logsumexp(x, axis=1)
sp.logsumexp(x, axis=1, keepdims=True, b=w)
sp.logsumexp(x, axis=0, return_sign=True)[0]
sp.softmax(x, axis=-1)
sp.log_softmax(x, axis=0)
sp.erf(x, out=np.zeros((3, 4)))
y = np.zeros((3, 4)); sp.erf(x, out=y); return y * x
sp.softmax(x)
sp.logsumexp(x)
sp.expit.outer(w, w)
sp.huber(1.0, x)
from scipy.special import erf; return erf(x)
from scipy import special; return special.expit(x)
import scipy.special; return scipy.special.expit(x)
import scipy.linalg as L; return L.cholesky(a, lower=True)
sl.inv(a)
sl.det(a) * x
sl.solve(a, w)
sl.solve(a, x.T)
sl.solve(a, w, assume_a="pos")
sl.cholesky(a)
sl.cholesky(a, lower=True)
sl.cho_solve(sl.cho_factor(a), w)
sl.cho_solve((sl.cholesky(a, lower=True), True), w)
sl.solve_triangular(a, w)
sl.solve_triangular(a, w, lower=True)
sl.solve_triangular(a, w, lower=True, trans=1, unit_diagonal=True)
sl.eigvalsh(a)
sl.eigh(a)[0]
q, v = sl.eigh(a); return (v * np.exp(q)) @ v.T
sl.svdvals(x)
u, s, v = sl.svd(x, full_matrices=False); return (u * s ** 2) @ v
sl.svd(x)[1]
np.abs(sl.qr(a)[1])
sl.qr(x, mode="economic")[1]
sl.norm(x)
sl.norm(x, axis=1)
sl.expm(a)
sl.pinv(x)
sl.block_diag(x, a)
sl.toeplitz(w)
sl.lu(a)[2]
sl.lstsq(x.T, w)[0]
"""
