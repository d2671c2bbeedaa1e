"""Checkpoints of the command line: while something is trained for NAME, they are in the hidden file
`.NAME.checkpoint` beside it, which is removed when NAME is complete."""

from pathlib import Path

from salmc.errors import OutputError

_SUFFIX = ".checkpoint"


def claim_checkpoint(out: Path, *, resume: bool, overwrite: bool, complete: bool) -> Path:
    """The place of the checkpoint, unless what is there already forbids to train for `out`.

    `complete` tells whether `out` is there and needs no more training.
    """
    from salmc.sampling.files.atomic import final_place

    place = final_place(out)
    checkpoint = place.with_name(f".{place.name}{_SUFFIX}")
    if checkpoint.exists() and not resume and not overwrite:
        raise OutputError(
            f"There is a checkpoint of an unfinished training for {out}. Use --resume to go on "
            "with it, or --overwrite to begin anew."
        )
    if resume and complete and not checkpoint.exists():
        raise OutputError(f"The training for {out} is complete: there is nothing to resume.")
    return checkpoint


def unfinished(parent: Path) -> str:
    """The names beside which there are checkpoints, for a user who does not know them."""
    names = sorted(file.name[1 : -len(_SUFFIX)] for file in parent.glob(f".*{_SUFFIX}"))
    if not names:
        return ""
    return f" There are checkpoints for {', '.join(str(parent / name) for name in names)}."
