"""``python -m gradcheck``."""

from gradcheck.commands import main

if __name__ == "__main__":
    main(prog_name="gradcheck")
