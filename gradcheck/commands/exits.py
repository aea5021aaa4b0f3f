"""Exit codes that several commands have; those of `gradcheck run` are in its help."""

USAGE, BUG, NOTHING_SELECTED, INTERRUPTED = 2, 3, 5, 130
"""A wrong call or file; a bug of ours; nothing to do; Ctrl-C."""
