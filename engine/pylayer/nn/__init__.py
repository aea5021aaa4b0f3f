"""Layers with parameters, initializers, and functions composed of operations."""
