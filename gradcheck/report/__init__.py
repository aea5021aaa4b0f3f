"""Screens and files of a run: one module per format, all from the same `Result`."""
