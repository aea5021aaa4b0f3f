"""Optimizers: SGD, Momentum and Adam, and weight decay."""
