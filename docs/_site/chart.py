"""Mermaid's flow charts as plain HTML, as far as our pages use them: no script, nothing fetched.

A chart is drawn as one column, in the order in which its arrows lead; a node that both gives to and
takes from the column (`a <--> b`) stands beside the node that it works with.
"""

import html
import re

_LINK = re.compile(r"\s*(<?-->)\s*")
_NODE = re.compile(r'^(\w+)(?:\["(.*)"\])?$')


def drawn(source: str) -> str:
    """The chart as HTML.

    Raises:
        ValueError: if it has what is not known here.
    """
    labels: dict[str, str] = {}
    links: list[tuple[str, str, str]] = []
    for line in source.strip().splitlines()[1:]:
        parts = _LINK.split(line.strip())
        names = []
        for part in parts[::2]:
            found = _NODE.match(part)
            if found is None:
                raise ValueError(f"not a node of a flow chart: {part!r}")
            names.append(found[1])
            if found[2] is not None:
                labels[found[1]] = found[2]
        links += zip(names, parts[1::2], names[1:], strict=False)
    beside = {a: b for a, kind, b in links if kind == "<-->"}
    column = [name for name in labels if name not in beside]
    following = {a: b for a, kind, b in links if kind == "-->" and a not in beside}
    ends = set(following.values())
    order = [next(name for name in column if name not in ends)]
    while order[-1] in following:
        order.append(following[order[-1]])
    if sorted(order) != sorted(column):
        raise ValueError(f"not one column: {sorted(set(column) ^ set(order))}")
    rows = []
    for number, name in enumerate(order):
        arrow = '<div class="arrow" aria-hidden="true">↓</div>' if number else ""
        rows.append(f'{arrow}<div class="station">{_label(labels[name])}</div>')
        for side in (a for a, b in beside.items() if b == name):
            further = [_title(labels[b]) for a, kind, b in links if a == side and kind == "-->"]
            told = f"<br><small>also to: {', '.join(further)}</small>" if further else ""
            rows.append(
                f'<div class="station beside"><i aria-hidden="true">⇄</i>'
                f"{_label(labels[side])}{told}</div>"
            )
    return f'<div class="flow">{"".join(rows)}</div>'


def _label(text: str) -> str:
    """`<b>title</b><br/>rest`, with everything else escaped."""
    found = re.match(r"<b>(.*?)</b><br/>(.*)", text)
    if found is None:
        return f"<b>{html.escape(text)}</b>"
    return f"<b>{html.escape(found[1])}</b><span>{html.escape(found[2])}</span>"


def _title(text: str) -> str:
    found = re.match(r"<b>(.*?)</b>", text)
    return html.escape(found[1] if found else text)
