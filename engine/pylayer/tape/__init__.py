"""The definition of the engine: operations, their vjps, the graph they leave and the walk through
it."""
