"""Conformance of backends to the rules of documents: catalogue of rules, recorded deviations,
matrix, programs.
"""
