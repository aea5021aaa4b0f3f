"""The function whose arguments do not fit, according to a TypeError of Python's: what it takes."""

from __future__ import annotations

import dis
import inspect
import re
from collections.abc import Iterator
from types import (
    BuiltinFunctionType,
    FrameType,
    FunctionType,
    MethodType,
    ModuleType,
    TracebackType,
)
from typing import Any

from gradcheck.support.suggest import nearest

MISFIT = re.compile(r"([\w.<>]+)\(\) (?:got|missing|takes) .*arguments?\b")
"""Python's message on a call whose arguments do not fit the function of this qualified name."""
UNEXPECTED = re.compile(r"unexpected keyword argument '(\w+)'")


def advise_on_arguments(error: BaseException, message: str) -> str:
    """Return how the function is defined whose arguments do not fit, and the parameter that was
    likely meant.

    Empty for another error, and if the code that made the call does not show the function.
    """
    match = MISFIT.match(message)
    function = called_function(error, match[1]) if match else None
    if function is None:
        return ""
    signature = without_annotations(inspect.signature(function, follow_wrapped=False))
    unexpected = UNEXPECTED.search(message)
    if unexpected and unexpected[1] in signature.parameters:  # another function of this name
        return ""
    near = nearest(unexpected[1], signature.parameters) if unexpected else ""
    meant = f"; did you mean {near}?" if near and "did you mean" not in message.lower() else ""
    definition = " ".join(f"{function.__name__}{signature}".split())
    return f"; it is defined as {definition}{meant}"


def called_function(error: BaseException, qualified: str) -> Any:
    """The function of a qualified name whose call raised `error`; None unless there is exactly one
    among the objects that the caller's code names.
    """
    steps = [*tracebacks(error)][-2:]
    code, instruction = steps[-1].tb_frame.f_code, steps[-1].tb_lasti
    functions = functions_named(steps[-1].tb_frame, qualified)
    if code.co_code[instruction] == dis.opmap["RAISE_VARARGS"]:
        # The function itself checks its arguments, such as an operation of the engine.
        functions = (f for f in functions_named(steps[0].tb_frame, qualified) if f.__code__ is code)
    first, another = next(functions, None), next(functions, None)
    return first if another is None else None


def tracebacks(error: BaseException) -> Iterator[TracebackType]:
    """The frames that an error passed through, the outermost first."""
    step = error.__traceback__
    while step is not None:
        yield step
        step = step.tb_next


def functions_named(frame: FrameType, qualified: str) -> Iterator[Any]:
    """The functions of a qualified name among the objects that a frame's code names: its
    variables, and attributes of modules and classes.
    """
    code, variables = frame.f_code, {**frame.f_globals, **frame.f_locals}
    names = {*code.co_names, *code.co_varnames, *code.co_cellvars, *code.co_freevars}
    names.add(qualified.rpartition(".")[2])  # such as __init__
    names.discard("__class__")  # a class whose method the subclass may override
    waiting, visited = [variables[name] for name in names & variables.keys()], set[int]()
    while waiting:
        value = waiting.pop()
        if isinstance(value, (staticmethod, classmethod, MethodType)):
            value = value.__func__
        if not isinstance(value, FunctionType):  # such as np.sum, which wraps one
            value = inspect.getattr_static(value, "__wrapped__", value)
        is_function = isinstance(value, (FunctionType, BuiltinFunctionType))
        owner = value if is_function or isinstance(value, (type, ModuleType)) else type(value)
        if id(owner) in visited:
            continue
        visited.add(id(owner))
        if is_function and qualified in (value.__qualname__, value.__name__):  # torch omits a class
            yield value
        elif not is_function:
            members = (inspect.getattr_static(owner, name, None) for name in names)
            waiting += [member for member in members if member is not None]


def without_annotations(signature: inspect.Signature) -> inspect.Signature:
    """A signature with names and defaults only."""
    parameters = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=signature.empty)
