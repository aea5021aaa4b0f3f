"""The gradcheck command from a checkout, without installing the project: ``python cli.py run``."""

import sys
from pathlib import Path

root = Path(__file__).resolve().parent
sys.path[:0] = [str(root), str(root / "engine")]

try:
    from gradcheck.commands import main
except ModuleNotFoundError as error:
    print(
        f"cli.py: the package {error.name} is missing. Install what gradcheck needs: python -m pip install -e {root}",
        file=sys.stderr,
    )
    sys.exit(2)

if __name__ == "__main__":
    main(prog_name="cli.py")
