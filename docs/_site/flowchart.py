"""`mermaid` blocks of Markdown, drawn by `chart`."""

from typing import Any

from chart import drawn
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Mermaid(SphinxDirective):
    """The directive."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Draw it."""
        try:
            return [nodes.raw("", drawn("\n".join(self.content)), format="html")]
        except ValueError as error:
            raise self.error(str(error)) from error


def setup(app: Sphinx) -> dict[str, Any]:
    """For Sphinx."""
    app.add_directive("mermaid", Mermaid)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
