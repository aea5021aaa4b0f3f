"""What Paddle 3.3.1 was observed to do, rule by rule, each with the program that shows it: the table of docs/observed.md."""
