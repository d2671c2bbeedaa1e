"""Templates of pages and notebooks: all text is escaped, and a name that is missing is an error."""

from jinja2 import Environment, PackageLoader, StrictUndefined


def templates() -> Environment:
    """The templates of this folder."""
    return Environment(
        loader=PackageLoader("salmc.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
