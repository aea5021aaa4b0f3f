"""The harness: reads scenarios, runs them, compares gradients with numerical ones, reports.

In Python: `check` gives the verdict on a layer or function, `assert_gradients` raises unless it is right; within
`engine` a module that says ``import paddle`` gets the bundled engine where no Paddle is installed. `replicated` and
`partial` say what an argument stands for in a world of ranks.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
"""As `typing` has it. This file imports nothing, so that the command can prepare itself before it does."""

if TYPE_CHECKING:
    from typing import Any

    from gradcheck.api import GradientMismatch, assert_gradients, check, explore
    from gradcheck.case.user_code import engine
    from gradcheck.case.world_call import partial, replicated

__all__ = [
    "GradientMismatch", "__version__", "assert_gradients", "check", "engine", "explore", "partial", "replicated",
]  # fmt: skip


def __getattr__(name: str) -> "Any":  # the command line must not pay for NumPy and the engine
    if name == "engine":
        from gradcheck.case import user_code

        return user_code.engine
    if name in __all__:
        from gradcheck import api

        return getattr(api, name)
    raise AttributeError(f"module 'gradcheck' has no attribute {name!r}")
