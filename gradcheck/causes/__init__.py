"""Diagnosis of a wrong gradient: its wrong entries, and the mistake that explains them, with its
line.
"""
