"""What a finished site must not have: what is fetched when it is read, paths of this machine."""

import re
import sys
from pathlib import Path

_FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video)\b[^>]*\bsrc=["'](?:https?:)?//|"""
    r"""<link\b(?![^>]*rel=["'](?:canonical|alternate)["'])[^>]*\bhref=["'](?:https?:)?//"""
)
_IN_STYLE = re.compile(r"""(?:@import\s+|url\()["']?(?:https?:)?//""")


def troubles(site: Path) -> list[str]:
    """In words, one for each file."""
    found = []
    here = [str(Path(__file__).resolve().parents[2]), str(Path.home()), sys.prefix]
    for file in sorted(site.rglob("*")):
        if file.suffix not in {".html", ".css", ".js", ".json", ".svg"}:
            continue
        text = file.read_text(encoding="utf-8")
        fetched = _FETCHED.search(text) if file.suffix == ".html" else None
        fetched = fetched or (_IN_STYLE.search(text) if file.suffix in {".html", ".css"} else None)
        if fetched:
            found.append(f"{file.relative_to(site)} fetches from elsewhere: {fetched[0]}")
        found += [
            f"{file.relative_to(site)} has a path of this machine: {p}"
            for p in here
            if len(p) > 5 and p in text
        ]
        for pattern in (r"/tmp/\w+", r"/home/\w+/", r"site-packages/"):
            path = re.search(pattern, text)
            if path:
                found.append(f"{file.relative_to(site)} has a path of this machine: {path[0]}")
    return found


if __name__ == "__main__":
    told = troubles(Path(sys.argv[1]))
    sys.exit("\n".join(told) or None)
