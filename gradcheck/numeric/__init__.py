"""Numerical differentiation with error bars."""
