"""PyLayer, its context and saved values, saved-tensor hooks, and recompute."""
