"""Tensor and its parts: arrays, dtypes, sizes, printing."""
