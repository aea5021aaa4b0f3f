"""PyLayer, its context, what it saves, saved-tensor hooks and recompute."""
