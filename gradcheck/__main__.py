"""The ``gradcheck`` command, and ``python -m gradcheck``. Imports almost nothing before Ctrl-C is
handled.
"""

import gc
import os
import sys


def forget_current_folder() -> None:
    """Import nothing from the current folder, which ``python -m`` puts first, unless it is our own
    checkout.
    """
    try:
        here = os.getcwd()
    except OSError:  # it is gone
        here = ""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if not sys.flags.safe_path and sys.path[0] in ("", here) and here != ours:
        del sys.path[0]


if __name__ == "__main__":
    forget_current_folder()

try:
    import signal
except KeyboardInterrupt:
    os._exit(130)


CASE_COMMANDS = {"run", "check", "explore", "derive", "replay"}
"""Commands that run cases."""
OTHER_SERVER = ("-h", "--help", "-b", "--backend", "--executor", "--watch")
"""Options with which a command needs no server, or one other than the usual."""


def wants_server(arguments: list[str]) -> bool:
    """Whether a command line is likely to need the usual server. If so, it is started at once."""
    streams = (sys.stdin, sys.stdout, sys.stderr)
    if None in streams or CASE_COMMANDS.isdisjoint(arguments[:1]):
        return False  # a file that the server opens would get the number of the closed stream
    return not any(word.startswith(OTHER_SERVER) for word in arguments)


def main(name: str = "gradcheck") -> None:
    """Run the command line, which calls itself `name`.

    Until a run begins, and after it, Ctrl-C ends the process immediately: there is nothing to clean
    up, and an exception could interrupt any import. During a run, `commands.run_cases` handles it.
    """
    # Entry points of other packages; the search takes 8 ms.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # Not where it is ignored, as after nohup.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))
    if hasattr(signal, "SIGCHLD") and signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        # If SIGCHLD is ignored, the system reports no exit status of child processes.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if wants_server(sys.argv[1:]):
        from gradcheck.run.server_process import start_ahead

        start_ahead()
    gc.set_threshold(100_000)  # imported objects stay; a collection takes 10 ms
    from gradcheck.commands import main as command

    try:
        command(prog_name=name)
    finally:
        gc.freeze()  # so that garbage collection at exit does not scan all modules


if __name__ == "__main__":
    main()
