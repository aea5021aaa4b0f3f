"""From a problem to a verdict: what backward claims, held against the tape and against
differences."""
