"""NumPy code that tries to slip past a recording, and what becomes of each piece of it."""
