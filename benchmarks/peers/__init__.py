"""Samplers that people use, beside `salmc.sample`: one target, one request, one fresh process each.

densities      the targets' log densities: one formula for NumPy and JAX, no salmc
references     a known distribution for peers that need a prior
truths         exact draws of each target, for judging alone
judging        errors, what exact draws would have (the floor), and the rule of what is wrong
effective      effective sample size and R-hat in NumPy, which every environment has
samplers/      a file for each peer: its own way to so many effective draws
worker         what runs in the fresh process, in the peer's environment
environments   a virtual environment for each peer, made on demand from `requirements/`
processes      run the worker within limits, and end it
plan           which peer runs on which target: the jobs
results        kept figures as rows, times to other numbers of draws
tables         rows as tables, `pictures` as a plot, `page` puts both into docs/benchmarks.md

    python -m benchmarks peers [--quick] [--only mog6 --only salmc,emcee]
    python -m benchmarks.peers.page
"""

from typing import Any


def jobs(quick: bool = False) -> list[Any]:
    """A job for each peer, target and number of effective draws; see `plan`."""
    # Not above: peers' environments import this package, and have no salmc.
    from benchmarks.peers.plan import jobs as planned

    return planned(quick)
