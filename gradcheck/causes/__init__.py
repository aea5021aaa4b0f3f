"""Why a gradient is wrong: the wrong entries, and the mistake that reproduces them, with its line."""
