"""The scenario format ``gradcheck/v1``: its model, a reader that keeps positions, and messages."""
