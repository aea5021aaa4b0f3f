"""Why a gradient is wrong: which entries are, and the mistake that reproduces them, with its line."""
