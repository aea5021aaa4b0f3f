"""From a problem to a verdict: what backward claims, compared with the tape and with
differences."""
