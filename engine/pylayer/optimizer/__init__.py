"""Optimizers, learning-rate schedules, and the clipping of gradients."""
