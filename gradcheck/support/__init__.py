"""Small helpers for every package; none of them is about gradients."""
