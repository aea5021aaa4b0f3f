"""The harness: reads scenarios, runs them, compares gradients with numerical ones, reports."""

__version__ = "0.1.0"
