"""Implementations of Paddle's API that scenarios run on."""
