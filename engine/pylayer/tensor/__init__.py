"""Tensor and what it is made of: arrays, dtypes, sizes, and how it prints."""
