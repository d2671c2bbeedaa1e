"""JSON as salmc writes it: values that every reader accepts."""

import json
import math
import unicodedata
from typing import Any

_DIRECTIONS = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def plain(value: Any) -> Any:
    """JSON values: NumPy becomes Python, and NaN and infinities, which JSON lacks, become None."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def printable(value: Any) -> Any:
    """Text from a file, alone or anywhere in JSON values, as it may be shown on a terminal.

    Control characters, with which text can move the cursor or rename the window, and marks that
    turn the direction of what follows become a replacement character; line feeds and tabs stay.
    """
    if isinstance(value, str):
        return "".join("\N{REPLACEMENT CHARACTER}" if _is_control(c) else c for c in value)
    if isinstance(value, dict):
        return {printable(name): printable(item) for name, item in value.items()}
    if isinstance(value, list):
        return [printable(item) for item in value]
    return value


def _is_control(character: str) -> bool:
    if character in "\n\t" or (character.isascii() and character.isprintable()):
        return False
    # Cc: control characters; Cs: halves of characters; the others turn directions.
    return unicodedata.category(character) in ("Cc", "Cs") or character in _DIRECTIONS


def to_text(content: dict[str, Any], indent: int = 2) -> str:
    """A JSON file's text, cleaned by `plain`."""
    cleaned = plain(content)
    return json.dumps(cleaned, indent=indent, ensure_ascii=False, allow_nan=False) + "\n"
