"""One scenario as something that runs: its inputs, its layer, what it expects, and the verdict."""
