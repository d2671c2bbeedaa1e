"""`salmc images train` and `salmc images sample`: chains over images.

Beside the kernel NAME.salmc there are samples of it in NAME.png, and while it is trained its
checkpoints, as `checkpoints` tells.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from salmc.cli import options as shared
from salmc.cli.checkpoints import claim_checkpoint
from salmc.cli.console import INTERRUPTED, Interrupts, complain, one_sentence, output, remembering
from salmc.errors import ArgumentError, OutputError

if TYPE_CHECKING:
    import numpy as np

app = typer.Typer(
    name="images",
    help="Chains over images, learned from real images alone.",
    no_args_is_help=True,
)

_PICTURES = (".png", ".gif")
_SUFFIX = ".salmc"


@app.command("train")
@remembering
def train_images(
    data: Annotated[str, typer.Option(help="mnist, digits, or a folder of images.")],
    out: Annotated[Path, typer.Option(help="The .salmc file to write.")],
    kernel: Annotated[str, typer.Option(help="What is learned: conv or mlp.")] = "conv",
    size: Annotated[
        int | None,
        typer.Option(help="Pixels a side.", show_default="as they are; 64 for a folder"),
    ] = None,
    colour: Annotated[
        bool | None,
        typer.Option(
            "--colour/--grey", help="Three channels or one.", show_default="colour for a folder"
        ),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Steps of training.", show_default="12000")
    ] = None,
    seed: shared.Seed = 0,
    settings: shared.Settings = None,
    sheet_every: Annotated[
        int, typer.Option(help="Steps between two sheets of samples, to watch.")
    ] = 500,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a training that was stopped.")
    ] = False,
    overwrite: shared.Overwrite = False,
    quiet: shared.Quiet = False,
    debug: shared.Debug = False,
) -> None:
    """Learn a chain over images, and write its kernel and a sheet of samples."""
    with one_sentence(debug=debug), Interrupts() as interrupts:
        _check_suffix(out, _SUFFIX)
        checkpoint = claim_checkpoint(
            out, resume=resume, overwrite=overwrite, complete=out.exists()
        )
        if resume and not checkpoint.exists():
            raise OutputError(
                f"The training for {out} has no checkpoint: there is nothing to resume."
            )
        if out.exists() and not (resume or overwrite):
            raise OutputError(f"{out} exists already. Choose another file, or use --overwrite.")
        if not resume:
            checkpoint.unlink(missing_ok=True)
        from salmc.images.settings import ImageSettings
        from salmc.images.train import train

        chosen = shared.with_changes(ImageSettings(), shared.parse_settings(settings or []))
        sheet = out.with_suffix(".png")
        try:
            sampler = train(
                data,
                kernel=kernel,
                steps=steps,
                size=size,
                colour=colour,
                settings=chosen,
                seed=seed,
                out=out,
                checkpoint=checkpoint,
                resume=resume,
                sheet=sheet,
                sheet_every=sheet_every,
                progress=not quiet,
            )
        except KeyboardInterrupt:
            if not checkpoint.exists():
                raise
            _interrupted(out)
        console = output()
        if quiet:
            console.print(str(out), soft_wrap=True)
        else:
            seconds = sum(sampler.seconds.values())
            console.print(f"kernel   {out}", soft_wrap=True)
            console.print(f"samples  {sheet}", soft_wrap=True)
            console.print(f"seconds  {seconds:.0f}")
            console.print(f"next     salmc images sample {out} --out strip.png", soft_wrap=True)
            for sentence in sampler.warnings:
                console.print(f"warning  {sentence}", soft_wrap=True)
        if interrupts.seen:
            _interrupted(out)
        checkpoint.unlink(missing_ok=True)


@app.command("sample")
@remembering
def sample_images(
    kernel: Annotated[Path, typer.Argument(help="A .salmc file of a kernel over images.")],
    out: Annotated[Path, typer.Option(help="The picture to write: .png, or .gif to see it move.")],
    chains: Annotated[int, typer.Option(help="Number of chains, one row each.")] = 10,
    draws: Annotated[int, typer.Option(help="Draws of each chain.")] = 50,
    noise: Annotated[
        float, typer.Option(help="Variance of the noise: 0.5 jumps, 0 moves smoothly.")
    ] = 0.5,
    start: Annotated[str, typer.Option(help="Where chains start: noise or data.")] = "noise",
    seed: shared.Seed = 0,
    quiet: shared.Quiet = False,
    debug: shared.Debug = False,
) -> None:
    """Run chains of a trained kernel and draw them: a row for each, from left to right."""
    with one_sentence(debug=debug), Interrupts():
        _check_suffix(out, *_PICTURES)
        from salmc.images.sampler import load

        sampler = load(kernel)
        images = sampler.sample(chains, draws, seed, noise=noise, start=start, progress=not quiet)
        _write(images, out)
        output().print(str(out), soft_wrap=True)


def _write(images: "np.ndarray", path: Path) -> None:
    """A strip with one row for each chain; as a GIF, all chains side by side, one draw a frame."""
    from salmc.images.pictures import save_gif, save_png, strip
    from salmc.sampling.files.atomic import final_place, output_errors

    with output_errors(final_place(path)):
        final_place(path).parent.mkdir(parents=True, exist_ok=True)
    if path.suffix.lower() == ".png":
        save_png(strip(images), path)
    else:
        save_gif(images, path)


def _interrupted(out: Path) -> NoReturn:
    complain(f"Interrupted. Use --resume --out {out} to go on with the training.")
    raise typer.Exit(INTERRUPTED) from None


def _check_suffix(out: Path, *suffixes: str) -> None:
    if out.suffix.lower() not in suffixes:
        expected = " or ".join(suffixes)
        raise ArgumentError(f"The `--out` option must end in {expected}. Got {str(out)!r} instead.")
