"""Rules × backends: the catalogue of rules, what each backend does with each, and programs that show it."""
