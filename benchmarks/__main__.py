"""`python -m benchmarks [name …]`: run the named benchmarks, or all."""

import importlib
import sys

NAMES = (
    "import_time",
    "svgd_step",
    "many_particles",
    "ag_svgd_quality",
    "affine_change",
    "mog10",
    "tuning",
    "fit_time",
    "learned_kernels",
    "ablation",
    "a_nice_mc",
    "nuts_references",
)


def main() -> int:
    """Run each benchmark's `main`."""
    chosen = sys.argv[1:] or NAMES
    unknown = [name for name in chosen if name not in NAMES]
    if unknown:
        print(f"No benchmark is called {unknown[0]!r}; there are {', '.join(NAMES)}.")
        return 2
    for name in chosen:
        print(f"== {name}", flush=True)
        importlib.import_module(f"benchmarks.{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
