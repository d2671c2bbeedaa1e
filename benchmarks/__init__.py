"""Benchmarks: figures with the command that made them, side by side with peers in one run.

Each module has `jobs()`: the jobs of the benchmark, for the harness of the reproduction
(`salmc_paper.harness`). `results/<name>.json` has their figures; what is there is not run again.
"""
