"""From the text of a table to numbers.

Two forms are read: comma-separated with one line of names, and separated by blanks without names,
as the UCI archive has it. The last column is the label, 0 or 1.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from salmc.errors import DataError


class ParsedTable(NamedTuple):
    """The numbers of a table and the names of its columns."""

    values: Float[np.ndarray, "rows columns"]
    names: tuple[str, ...]


def parse_table(content: bytes, columns: int) -> ParsedTable:
    """Read a table of `columns` columns, the last of them the label.

    Raises:
        DataError: with the line and what is wrong in it.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError("it is not text") from None
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    names = (*(f"x{i}" for i in range(1, columns)), "y")
    separated_by_commas = bool(lines) and "," in lines[0][1]
    separator = "," if separated_by_commas else None
    if separated_by_commas:
        (_, header), *lines = lines
        names = tuple(name.strip() for name in header.split(","))
        if len(names) != columns:
            raise DataError(f"its first line has {len(names)} names, not {columns}")
    if not lines:
        raise DataError("it has no rows")
    values = np.array([_row(number, line.split(separator), columns) for number, line in lines])
    if not np.all(np.isin(values[:, -1], (0.0, 1.0))):
        raise DataError("its last column, the label, has values other than 0 and 1")
    return ParsedTable(values, names)


def _row(number: int, cells: list[str], columns: int) -> list[float]:
    if len(cells) != columns:
        raise DataError(f"its line {number} has {len(cells)} values, not {columns}")
    try:
        row = [float(cell) for cell in cells]
    except ValueError:
        raise DataError(f"its line {number} has a value that is no number") from None
    if not np.all(np.isfinite(row)):
        raise DataError(f"its line {number} has a value that is not finite")
    return row
