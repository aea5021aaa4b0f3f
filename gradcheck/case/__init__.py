"""Running one scenario: its inputs, its layer, its expectations, and the verdict."""
