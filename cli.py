"""The gradcheck command from a checkout, without installing the project: ``python cli.py run``."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent / "engine")]

try:
    from gradcheck.commands import main
except ModuleNotFoundError as error:
    sys.exit(f"cli.py: the package {error.name} is missing. Install what gradcheck needs: python -m pip install -e .")

main(prog_name="cli.py")
