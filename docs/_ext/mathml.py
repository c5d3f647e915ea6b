"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

WARN = logging.getLogger(__name__).warning


def mathml(node: Any, *, block: bool) -> str:
    """A formula; a warning, and so the end of the build, where a command is not known."""
    source = node.astext()
    try:
        found: str = convert(source, display="block" if block else "inline")
    except Exception as error:  # of a dozen classes
        WARN("the formula is not understood (%r): %s", error, source, location=node)
        return str(source)
    if "\\" in found or "<mi>&</mi>" in found:
        WARN("the formula has a command that MathML does not: %s", source, location=node)
    return found


def inline(self: Any, node: nodes.math) -> None:
    """A formula in a line."""
    self.body.append(mathml(node, block=False))
    raise nodes.SkipNode


def display(self: Any, node: nodes.math_block) -> None:
    """A formula of its own."""
    self.body.append(f'<div class="formula">{mathml(node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer it as a renderer; conf.py chooses it."""
    app.add_html_math_renderer("mathml", (inline, None), (display, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
