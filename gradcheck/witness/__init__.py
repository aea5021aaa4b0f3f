"""The second witness: the forward recorded as it is computed, and differentiated by the framework's own rules."""
