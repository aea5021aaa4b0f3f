"""Layers with parameters, their first values, and the functions that are compositions of
operations.
"""
