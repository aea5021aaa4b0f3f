"""``python -m gradcheck``."""

from gradcheck.commands import main

main(prog_name="gradcheck")
