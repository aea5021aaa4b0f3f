"""Static graph mode: programs that are built once from the same operations, and run many times."""
