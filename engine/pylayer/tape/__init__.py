"""The definition of the engine: operations, their vjps, the recorded graph, and the walk through
it.
"""
