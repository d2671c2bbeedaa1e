"""What a page shows beside numbers, in memory and in the `plots` folder of a run.

plots/NAME.png        the pictures
plots/dark/NAME.png   the same on dark paper
plots/page.json       headings, captions, alternative texts, and the path of a chain
"""

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

from salmc.errors import OutputError
from salmc.sampling.files.atomic import write_file
from salmc.sampling.files.folder import read_json, write_json


class Illustration(NamedTuple):
    """A picture and its words."""

    name: str
    heading: str
    caption: str
    alt: str
    light: bytes
    dark: bytes | None


@dataclasses.dataclass(frozen=True)
class Illustrations:
    """All of a page.

    Attributes:
        pictures: in the order in which a reader needs them.
        path: of a chain, as `chain_path` makes it; None where there is none.
        troubles: what went wrong in making them, in words.
    """

    pictures: tuple[Illustration, ...] = ()
    path: dict[str, Any] | None = None
    troubles: tuple[str, ...] = ()

    def write(self, folder: Path) -> tuple[str, ...]:
        """Into a folder that exists. Returns what could not be written, in words."""
        troubles, words = [], {}
        for picture in self.pictures:
            try:
                write_file(folder / f"{picture.name}.png", picture.light)
                if picture.dark is not None:
                    (folder / "dark").mkdir(exist_ok=True)
                    write_file(folder / "dark" / f"{picture.name}.png", picture.dark)
            except (OutputError, OSError) as error:
                troubles.append(f"The picture {picture.name}.png could not be drawn: {error}")
                continue
            words[picture.name] = {
                "heading": picture.heading,
                "caption": picture.caption,
                "alt": picture.alt,
            }
        try:
            write_json(folder / "page.json", {"pictures": words, "path": self.path})
        except OSError as error:
            troubles.append(f"The words of the pictures could not be written: {error}")
        return tuple(troubles)


def read_illustrations(folder: Path) -> Illustrations:
    """From a `plots` folder; pictures that have no words, as of earlier versions, come last."""
    files = {file.stem: file for file in sorted(folder.glob("*.png"))}
    told: dict[str, Any] = {}
    if (folder / "page.json").exists():
        told = read_json(folder / "page.json", folder)
    words = told.get("pictures")
    words = words if isinstance(words, dict) else {}
    known = [name for name in words if name in files and isinstance(words[name], dict)]
    pictures = []
    for name in [*known, *(name for name in files if name not in known)]:
        say = words.get(name, {})
        dark = folder / "dark" / f"{name}.png"
        heading = str(say.get("heading", name))
        pictures.append(
            Illustration(
                name,
                heading,
                str(say.get("caption", "")),
                str(say.get("alt", heading)),
                files[name].read_bytes(),
                dark.read_bytes() if dark.is_file() else None,
            )
        )
    path = told.get("path")
    return Illustrations(tuple(pictures), path if isinstance(path, dict) else None)
