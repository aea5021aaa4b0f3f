"""The harness: reads scenarios, runs them, compares gradients with numerical ones, reports.

In Python: `check` gives the verdict on a layer or function, `assert_gradients` raises unless its
gradient is right; within `engine` a module that says ``import paddle`` gets the bundled engine
where no Paddle is installed. `replicated` and `partial` declare how an argument is distributed over
the ranks of a world.
"""

__version__ = "0.1.0"

TYPE_CHECKING = False
"""`typing.TYPE_CHECKING`, without importing `typing`: this file imports nothing, so that the
command can prepare the process first.
"""

if TYPE_CHECKING:
    from gradcheck.api import Explored, GradientMismatch, assert_gradients, check, derive, explore
    from gradcheck.case.user_code import engine
    from gradcheck.case.world import partial, replicated
    from gradcheck.deriving.derived import Derived
    from gradcheck.report.check_result import CheckResult
    from gradcheck.result import Diagnosis, Status

__all__ = [
    "CheckResult",
    "Derived",
    "Diagnosis",
    "Explored",
    "GradientMismatch",
    "Status",
    "__version__",
    "assert_gradients",
    "check",
    "derive",
    "engine",
    "explore",
    "partial",
    "replicated",
]

# Hidden from type checkers, so that a name that is not in __all__ is an error.
if not TYPE_CHECKING:

    def __getattr__(name):
        # Imported on first use: the command line must not pay for NumPy and the engine.
        from importlib import import_module

        rooms = {"engine": "case.user_code", "Status": "result", "Diagnosis": "result"}
        if name in __all__:
            return getattr(import_module(f"gradcheck.{rooms.get(name, 'api')}"), name)
        raise AttributeError(f"module 'gradcheck' has no attribute {name!r}")
