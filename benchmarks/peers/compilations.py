"""CPU time of a process while JAX compiles in it.

JAX tells the wall time of each compilation by XLA when it ends. On a busy machine that says little,
so a thread notes CPU and wall time side by side, many times a second, and a compilation's wall time
is looked up there. What runs beside a compilation counts as part of it.
"""

import threading
import time
from typing import Any

import numpy as np

_EVERY = 0.02


class Compilations:
    """Listens from now on."""

    def __init__(self) -> None:
        import jax

        self._spans: list[tuple[float, float]] = []
        self._clock = [(time.perf_counter(), time.process_time())]
        jax.monitoring.register_event_duration_secs_listener(self._hear)
        threading.Thread(target=self._watch, daemon=True).start()

    def cpu_seconds(self) -> float:
        """Of all compilations until now; those side by side count once."""
        wall, cpu = np.array([*self._clock, (time.perf_counter(), time.process_time())]).T
        return float(sum(np.diff(np.interp(span, wall, cpu))[0] for span in merged(self._spans)))

    def _hear(self, event: str, duration_secs: float, **kwargs: Any) -> None:
        if event.endswith("backend_compile_duration"):
            del kwargs
            now = time.perf_counter()
            self._spans.append((now - duration_secs, now))

    def _watch(self) -> None:
        while True:
            self._clock.append((time.perf_counter(), time.process_time()))
            time.sleep(_EVERY)


def merged(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The same time, no part of it twice."""
    found: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found
