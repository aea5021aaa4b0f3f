"""`paddle.nn`."""
