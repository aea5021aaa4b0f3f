"""Many cases: the plan, the processes that run them, the record of their results."""
