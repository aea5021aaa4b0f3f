"""Small helpers for every package, none of which is about gradients."""
