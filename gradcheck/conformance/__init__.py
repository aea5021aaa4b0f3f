"""Rules of documents and what each backend does with them: catalogue, matrix, programs."""
