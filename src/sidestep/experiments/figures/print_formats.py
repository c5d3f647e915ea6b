"""Figures for print: PDF with embedded fonts, and PGF, whose words LaTeX sets in the paper's font.

Matplotlib's own PGF asks LaTeX how wide every word is, and leaves `_` and `&` as they are. Here words are
measured as for a PNG, so that the file is written without LaTeX, and escaped, so that LaTeX can set them.
"""

import io
import re
from typing import Any

import matplotlib as mpl
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pgf import RendererPgf
from matplotlib.figure import Figure

PRINTED = ("pdf", "pgf")
MATH = re.compile(r"(?<!\\)(\$[^$]*\$)")
SPECIAL = re.compile(r"[\\{}$&%#_~^<>|]")
WORDS = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
WORDS |= {one: rf"\ensuremath{{{one}}}" for one in "<>|"}
HEAD = r"""%% Written by sidestep; needs \usepackage{{pgf}}, then \input{{this file}}
\begingroup
\makeatletter
\begin{{pgfpicture}}
\pgfpathrectangle{{\pgfpointorigin}}{{\pgfqpoint{{{wide:f}in}}{{{tall:f}in}}}}
\pgfusepath{{use as bounding box, clip}}
"""
TAIL = r"""\end{pgfpicture}
\makeatother
\endgroup
"""


def printed(figure: Figure, form: str) -> bytes:
    """The figure as the bytes of a file of this format; the same bytes every time."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    figure.set_layout_engine(None)  # everything has its place now
    if form == "pgf":
        return _pgf(figure, canvas.get_renderer())
    file = io.BytesIO()
    with mpl.rc_context({"pdf.fonttype": 42}):  # as journals ask: outlines that can be searched
        figure.savefig(file, format="pdf", metadata={"CreationDate": None})
    return file.getvalue()


def _pgf(figure: Figure, measured_by: RendererBase) -> bytes:
    file = io.StringIO()
    wide, tall = figure.get_size_inches()
    file.write(HEAD.format(wide=wide, tall=tall))
    figure.draw(_Pgf(figure, file, measured_by))
    file.write(TAIL)
    return file.getvalue().encode()


class _Pgf(RendererPgf):
    """Matplotlib's PGF, with words measured by another renderer and escaped for LaTeX."""

    def __init__(self, figure: Figure, file: io.StringIO, measured_by: RendererBase) -> None:
        super().__init__(figure, file)  # type: ignore[no-untyped-call]
        self.measured_by = measured_by

    def get_text_width_height_descent(self, s: str, prop: Any, ismath: Any) -> Any:
        """Width, height and descent of words, in pixels."""
        return self.measured_by.get_text_width_height_descent(s, prop, ismath)

    def draw_text(self, gc: Any, x: Any, y: Any, s: str, *more: Any, **known: Any) -> None:
        """Words at a place."""
        super().draw_text(gc, x, y, for_latex(s), *more, **known)  # type: ignore[no-untyped-call]


def for_latex(words: str) -> str:
    """Words as LaTeX sets them; formulas between dollars stay as they are."""
    parts = MATH.split(words)
    return "".join(
        part if k % 2 else SPECIAL.sub(lambda one: WORDS.get(one[0], f"\\{one[0]}"), part)
        for k, part in enumerate(parts)
    )
