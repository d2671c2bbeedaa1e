"""Docstrings as they are written in the code, in a form that Sphinx reads without complaint.

The code is written to be read in an editor: single backticks for code, formulae in Unicode,
indented, and headings that are sentences ("Attributes, beside those that all methods have:").
Sphinx reads reStructuredText, where stars and bars mean something. They mean nothing here.
"""

import re
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

_CODE = re.compile(r"(`[^`]*`)")
_HEADING = re.compile(r"^Attributes, (.*):$")
_NAMES = re.compile(r"^:ivar (\w+(?:, \w+)+):(.*)$")
_COLON = "\ue000"
_ARRAY = "jaxlib._jax.Array"


def sections(_app: Any, what: str, _name: str, _of: Any, _options: Any, lines: list[str]) -> None:
    """Before Napoleon: a heading that says more than one word becomes a sentence and a heading.

    And what stands before a colon is no type, which it takes it for in the text of a property.
    """
    if lines and re.fullmatch(r"Alias for field number \d+", lines[0]):
        lines[:] = []  # Python's own words about a field of a named tuple that has none
    if what in ("property", "attribute", "data"):
        lines[:] = [line.replace(":", _COLON) for line in lines]
    for number, line in enumerate(lines):
        found = _HEADING.match(line)
        if found:
            told = found[1][0].upper() + found[1][1:]
            lines[number : number + 1] = [f"{told}:", "", "Attributes:"]
            return


def prepared(_app: Any, _what: str, _name: str, _of: Any, _options: Any, lines: list[str]) -> None:
    """After Napoleon: escape what would be markup outside of code; examples stay as they are."""
    lines[:] = [line.replace(_COLON, ":") for line in _each_alone(lines)]
    for number, line in enumerate(lines):
        if line.lstrip().startswith((">>>", "...", ":", "..")):
            continue
        parts = _CODE.split(line)
        parts[::2] = [re.sub(r"(?<!\\)([*|](?=\S))", r"\\\1", part) for part in parts[::2]]
        lines[number] = "".join(parts)


def _each_alone(lines: list[str]) -> list[str]:
    """Attributes that share a text have it each, as Napoleon does it for arguments."""
    found: list[str] = []
    number = 0
    while number < len(lines):
        end = number + 1
        shared = _NAMES.match(lines[number])
        if shared:
            while end < len(lines) and lines[end].startswith(" "):
                end += 1
            for name in shared[1].split(", "):
                found += [f":ivar {name}:{shared[2]}", *lines[number + 1 : end]]
        else:
            found.append(lines[number])
        number = end
    return found


def signatures(_app: Any, document: nodes.document) -> None:
    """JAX's arrays by the name that users know them by."""
    for signature in document.findall(addnodes.desc_signature):
        for text in list(signature.findall(nodes.Text)):
            if _ARRAY in text:
                text.parent.replace(text, nodes.Text(text.replace(_ARRAY, "Array")))


def setup(app: Sphinx) -> dict[str, Any]:
    """For Sphinx; Napoleon has the priority 500."""
    app.connect("autodoc-process-docstring", sections, priority=100)
    app.connect("autodoc-process-docstring", prepared, priority=900)
    app.connect("doctree-read", signatures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
