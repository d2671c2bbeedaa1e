"""Iterators that are worked off at the same time."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")


def side_by_side(iterators: list[Iterator[Item]]) -> Iterator[list[Item]]:
    """The next item of each, one list after the other, until one of them ends.

    Each iterator has a thread of its own, and no other thread ever touches it: what JAX starts from
    one thread runs in that order, one after the other. While a list is looked at, the next is
    under way. An error in one of them is raised here; what the others still do is not waited for,
    so that Ctrl-C is answered at once.
    """
    workers = [ThreadPoolExecutor(1, "salmc-chains") for _ in iterators]

    def begin() -> list[Future[Item | None]]:
        pairs = zip(workers, iterators, strict=True)
        return [worker.submit(next, iterator, None) for worker, iterator in pairs]

    try:
        pending = begin()
        while True:
            items = [future.result() for future in pending]
            found = [item for item in items if item is not None]
            if len(found) < len(items):
                return
            pending = begin()
            yield found
    finally:
        for worker in workers:
            worker.shutdown(wait=False, cancel_futures=True)
