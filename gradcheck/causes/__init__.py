"""Why a gradient is wrong: its wrong entries, and the mistake that explains them, with its line."""
