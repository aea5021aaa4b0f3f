"""Frameworks on which scenarios run."""
