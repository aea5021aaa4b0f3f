"""Many cases: the plan, the workers that run them, the record of their results."""
