"""What all commands share: consoles, one sentence for an error, what Ctrl-C means, and programs
that are kept."""

import contextlib
import functools
import signal
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, ParamSpec

import typer
from rich.console import Console
from rich.markup import escape

from salmc.errors import SalmcError, reason
from salmc.json_values import printable
from salmc.programs_on_disk import remember_programs

Arguments = ParamSpec("Arguments")

BAD_INPUT = 2
UNEXPECTED = 1
INTERRUPTED = 130


def remembering(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """The command, with compiled programs on disk: each is a new process, as was the one before."""

    @functools.wraps(command)
    def wrapped(*arguments: Arguments.args, **options: Arguments.kwargs) -> None:
        remember_programs()
        command(*arguments, **options)

    return wrapped


def output() -> Console:
    """Standard output, as it is now: tests and pipes exchange it."""
    return Console(highlight=False)


def complain(sentence: str) -> None:
    """One sentence on standard error, not broken into lines where it goes to a file."""
    Console(stderr=True, highlight=False).print(
        f"[bold red]Error:[/] {escape(printable(sentence))}", soft_wrap=True
    )


@contextlib.contextmanager
def one_sentence(*, debug: bool, spec: str = "") -> Iterator[None]:
    """Errors become one sentence and an exit code; with `debug` they keep their traceback.

    Args:
        debug: let errors through.
        spec: how the target was named: an error in the user's own file is bad input, too.
    """
    try:
        yield
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        complain("Interrupted before there was anything to write.")
        raise typer.Exit(INTERRUPTED) from None
    except SalmcError as error:
        if debug:
            raise
        complain(str(error))
        raise typer.Exit(BAD_INPUT) from None
    except Exception as error:
        if debug:
            raise
        sentence, code = _explain(error, spec)
        complain(sentence)
        raise typer.Exit(code) from None


class Interrupts:
    """Ctrl-C ends the work of the moment, and what was computed until then is kept; so does the
    signal to end (SIGTERM) of schedulers and of systems that shut down.

    While `held`, as when files are written, it is only noted in `seen`.
    """

    def __init__(self) -> None:
        self.seen = False
        self.held = False
        self._previous: dict[int, Any] = {}
        self._until_the_end = contextlib.ExitStack()

    def __enter__(self) -> "Interrupts":
        # Only the main thread may set handlers; elsewhere Ctrl-C does not arrive anyway.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        self._until_the_end.close()
        for number, previous in self._previous.items():
            signal.signal(number, previous)

    def enter(self, context: contextlib.AbstractContextManager[None]) -> None:
        """Be in another context, too, until the command ends."""
        self._until_the_end.enter_context(context)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.seen = True
        if not self.held:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def hold(self, held: bool = True) -> Iterator[None]:
        """Within this block Ctrl-C is only noted (or, with False, ends the work again)."""
        before, self.held = self.held, held
        try:
            yield
        finally:
            self.held = before


def _explain(error: Exception, spec: str) -> tuple[str, int]:
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
        return "There is not enough memory for this run. Use fewer particles.", BAD_INPUT
    told = reason(error).rstrip(".")
    file, colon, _ = spec.rpartition(":")
    own = str(Path(file).expanduser().resolve()) if colon else ""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == own]
    if lines:
        return f"The target failed in {file}, line {lines[-1]}: {told}.", BAD_INPUT
    return f"Unexpected {told}. Run again with --debug to see where.", UNEXPECTED
