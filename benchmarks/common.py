"""What the benchmarks share: how a result is recorded."""

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import jax

RESULTS = Path(__file__).parent / "results"


def record(name: str, result: dict[str, Any]) -> None:
    """Write `results/<name>.json` and show it."""
    RESULTS.mkdir(exist_ok=True)
    content = {
        "command": f"python -m benchmarks {name}",
        "when": time.strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "jax": jax.__version__,
        **result,
    }
    text = json.dumps(content, indent=2) + "\n"
    path = RESULTS / f"{name}.json"
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text)
    temporary.replace(path)
    print(text, flush=True)


def best_seconds(function: Any, *arguments: Any, repeats: int = 5) -> float:
    """Shortest of several timed calls after one that compiles: the least disturbed one."""
    jax.block_until_ready(function(*arguments))
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - began)
    return min(times)
