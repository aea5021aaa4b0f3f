"""`paddle.fft`."""

from __future__ import annotations

from pylayer.paddle._names import exported, missing

_EXPORTS = {
    "ops.fourier": (
        "fft fft2 fftfreq fftn fftshift hfft hfft2 hfftn ifft ifft2 ifftn ifftshift ihfft ihfft2 ihfftn irfft "
        "irfft2 irfftn rfft rfft2 rfftfreq rfftn"
    ),
}
globals().update(exported(_EXPORTS))

__getattr__ = missing(__name__)
