"""Default limits of a case (time, memory) and default tolerances: of values, and between backends.
Imports nothing.
"""

from __future__ import annotations

TIMEOUT = 60.0
"""Seconds."""
MEMORY = 4 << 30
"""Bytes."""
RTOL = {
    "float16": 2e-3,
    "bfloat16": 2e-2,
    "float32": 1e-6,
    "complex64": 1e-6,
    "float64": 1e-12,
    "complex128": 1e-12,
}
"""Relative tolerance for an expected value of a dtype, where the scenario gives none: a few units
in its last place.
"""
BACKENDS_RTOL = {
    "float64": 1e-12,
    "complex128": 1e-12,
    "float32": 16 * 2.0**-23,
    "complex64": 16 * 2.0**-23,
    "float16": 4 * 2.0**-10,
    "bfloat16": 4 * 2.0**-7,
}
"""Tolerance between backends, relative to the largest element of the Tensor, by its dtype.

Of 2,083 Tensors of the bundled scenarios on five releases none was further from the engine's than
1.4e-14 in float64, 3.7e-7 (3 spacings at 1) in float32, and 2.3e-2 (3 spacings) in bfloat16.
"""
