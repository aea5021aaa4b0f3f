"""The gradcheck command from a checkout, without installing the project: ``python cli.py run``."""

import os
import sys

root = os.path.dirname(os.path.realpath(__file__))
sys.path[:0] = [root, os.path.join(root, "engine")]

try:
    from gradcheck.__main__ import main
except KeyboardInterrupt:
    os._exit(130)

if __name__ == "__main__":
    try:
        main("cli.py")
    except ModuleNotFoundError as error:
        print(
            f"cli.py: the package {error.name} is missing. "
            f"Install what gradcheck needs: python -m pip install -e {root}",
            file=sys.stderr,
        )
        sys.exit(2)
