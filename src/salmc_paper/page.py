"""The page that collects all experiments of a folder, made from their JSON files."""

import json
from pathlib import Path
from typing import Any

from salmc.sampling.files.atomic import output_errors, write_file
from salmc_paper.harness.store import write_text
from salmc_paper.outcome import section
from salmc_paper.registry import EXPERIMENTS

_OPENING = """# The paper's results, beside ours

Every table and figure of the paper about sampling, run by `salmc reproduce`. The paper's numbers
are as printed in it; ours come from the runs named below each part. ESS is the paper's estimator
with the true moments, of one chain; it cannot see bias, so a bias figure stands beside it. ESS per
second counts all chains, without training and compilation, which are told apart. Times depend on
the machine and on what else it does: jobs that were run apart cannot be compared in speed. The
tables "Speed, in one run" can: their samplers took turns.
"""


def write_page(out: Path) -> Path:
    """`results.md` beside the experiments' files."""
    return write_text(out / "results.md", _page(out, ""))


def write_docs(out: Path, docs: Path) -> Path:
    """`results.md` for the documentation, with the pictures in `images/results`.

    Raises:
        OutputError: if a file cannot be written.
    """
    images = docs / "images" / "results"
    with output_errors(images):
        images.mkdir(parents=True, exist_ok=True)
    for name in EXPERIMENTS:
        if (out / f"{name}.png").exists():
            write_file(images / f"{name}.png", (out / f"{name}.png").read_bytes())
    return write_text(docs / "results.md", _page(out, "images/results/"))


def _page(out: Path, folder: str) -> str:
    found = {name: content for name in EXPERIMENTS if (content := _read(out / f"{name}.json"))}
    parts = [_OPENING]
    for name, content in found.items():
        picture = f"{folder}{name}.png" if (out / f"{name}.png").exists() else None
        parts.append(f"## {content['title']}\n\n{section(content, picture)}")
    absent = [name for name in EXPERIMENTS if name not in found]
    if absent:
        parts.append("## Not run\n\n" + "\n".join(f"- {name}" for name in absent) + "\n")
    return "\n".join(parts)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return content if isinstance(content["tables"], list) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
