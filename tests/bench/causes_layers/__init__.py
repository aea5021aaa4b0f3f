"""Layers with hand-written backwards, mistakes in them, and the lines at which each mistake is to be named."""
