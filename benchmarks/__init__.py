"""Benchmarks: figures with the command that made them, side by side with peers in one run."""
