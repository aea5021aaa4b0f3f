"""Small programs as layer authors write them, each a function of a library, run on the engine and on Paddle 3.3.1."""
