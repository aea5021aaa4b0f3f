"""Optimizers: SGD, Momentum, Adam and AdamW, and weight decay."""
