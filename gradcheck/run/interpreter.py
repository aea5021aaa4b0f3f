"""The command and environment of the Python processes that run cases. Imports nothing slow."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

from gradcheck.support.variables import without_our_paths

EXECUTE = "gradcheck.case.execute:execute"
"""The function that runs a case, as ``module:function``."""
START_METHODS = ("fork", "spawn")
START = os.environ.get("GRADCHECK_START") or ("fork" if sys.platform == "linux" else "spawn")
"""How the process of a case is made: forked from a server that has imported everything, or started
as a new interpreter.

On macOS a process that has used system libraries must not continue after a fork.
"""

READY = b"ready\n"
"""A server's first message: the imports succeeded."""
START_LIMIT = 300.0
"""Seconds within which a process must be ready: importing a backend for the first time, from a slow
disk, takes a minute.
"""


def python(module: str, interpreter: str = "") -> list[str]:
    """The command that runs ``main`` of a module with this interpreter, with the module paths of
    this process.

    A different `interpreter` has its own packages. It gets the paths of gradcheck, the engine and
    the user's folders, but not those of packages that are installed for this interpreter.
    """
    if not interpreter:
        program = f"import sys; sys.path[:] = {sys.path!r}; from {module} import main; main()"
        return [sys.executable, "-P", "-c", program]
    program = f"import sys\nsys.path += {users_folders()!r}\nours = {our_packages()!r}\n{_OURS}"
    return [interpreter, "-P", "-c", f"{program}from {module} import main; main()"]


_OURS = """
from importlib.util import module_from_spec, spec_from_file_location
for name, folder in ours.items():
    file = folder + "/__init__.py"
    spec = spec_from_file_location(name, file, submodule_search_locations=[folder])
    sys.modules[name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
"""


def our_packages() -> dict[str, str]:
    """The folders of gradcheck and of the engine, by name."""
    module_specs = {name: find_spec(name) for name in ("gradcheck", "pylayer")}
    return {
        name: os.path.dirname(spec.origin)
        for name, spec in module_specs.items()
        if spec and spec.origin
    }


def users_folders() -> list[str]:
    """The folders in which this process finds modules, without those of its installation."""
    installed = (sys.prefix, sys.base_prefix, sys.exec_prefix)
    real = [os.path.realpath(path or os.curdir) for path in sys.path]
    return [
        path
        for path in dict.fromkeys(real)
        if not path.endswith(("site-packages", "dist-packages"))
        and not any(path.startswith(os.path.realpath(prefix) + os.sep) for prefix in installed)
    ]


def environment(interpreter: str = "") -> dict[str, str]:
    """The environment of a server: this process's, with one thread per case and fixed hashes."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {
        **threads,
        "PYTHONHASHSEED": "0",
        **(without_our_paths() if interpreter else os.environ),
    }
