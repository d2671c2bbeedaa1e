"""Commands that compute keep what they compile: each is a new process, as was the one before."""

import functools
from collections.abc import Callable
from typing import ParamSpec

from salmc.programs_on_disk import remember_programs

Arguments = ParamSpec("Arguments")


def remembering(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """The command, with compiled programs on disk."""

    @functools.wraps(command)
    def wrapped(*arguments: Arguments.args, **options: Arguments.kwargs) -> None:
        remember_programs()
        command(*arguments, **options)

    return wrapped
