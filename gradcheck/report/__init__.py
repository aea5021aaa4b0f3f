"""What a run shows and writes: one file per format, all over the same `Result`."""
