"""What a verdict rests on: the gradient check."""
