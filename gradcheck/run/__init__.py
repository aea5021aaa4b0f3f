"""Running scenarios: the plan, the workers, one case."""
