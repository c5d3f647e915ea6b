"""Figures for a paper: PDF and PGF at a given width, and words that LaTeX can set."""

import re
import shutil
import subprocess

import pytest
from test_figures import drawing, series

from sidestep.experiments.figures import figures
from sidestep.experiments.figures.print_formats import for_latex
from sidestep.experiments.figures.styles import Drawing, Panel, styles_of

AWKWARD = r"my_own & 50% #1 {a} ~ ^ <b> \\x $\theta_0$"


@pytest.fixture(scope="module")
def done():
    """A figure with awkward words, drawn twice."""
    panel = Panel(AWKWARD, [series("a", name=AWKWARD), series("b", 2.0)])
    plan = Drawing("n", "regret", [panel], styles_of(["a", "b"]), width=3.3, formats=("pdf", "pgf"))
    return [figures.render(plan) for _ in range(2)]


def test_a_pdf_has_the_width_that_was_asked_for_and_embeds_its_font(done):
    pdf = dict(done[0].prints)["pdf"]
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", pdf)
    assert float(box[1]) == pytest.approx(3.3 * 72)
    assert b"/CIDFontType2" in pdf  # outlines, type 42, not drawings of letters (type 3)
    assert b"/Type3" not in pdf


def test_a_pgf_has_the_width_that_was_asked_for(done):
    pgf = dict(done[0].prints)["pgf"].decode()
    assert r"{\pgfqpoint{3.300000in}" in pgf
    assert r"my\_own \& 50\% \#1" in pgf


def test_prints_are_the_same_every_time_and_the_picture_of_the_page_does_not_change(done):
    assert done[0].prints == done[1].prints
    plain = drawing()
    assert (
        figures.render(plain)[:4] == figures.render(plain._replace(width=3.3, formats=("pdf",)))[:4]
    )


def test_special_letters_are_escaped_and_formulas_kept():
    assert for_latex("a_1 & b") == r"a\_1 \& b"
    assert for_latex(r"$a_1$ of 5%") == r"$a_1$ of 5\%"
    assert for_latex("x < 3") == r"x \ensuremath{<} 3"
    assert for_latex("costs 5$") == r"costs 5\$"


@pytest.mark.full
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="there is no pdflatex here")
def test_latex_sets_a_pgf(done, tmp_path):
    (tmp_path / "figure.pgf").write_bytes(dict(done[0].prints)["pgf"])
    (tmp_path / "paper.tex").write_text(
        r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{pgf}"
        r"\begin{document}\input{figure.pgf}\end{document}"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    made = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert made.returncode == 0, made.stdout[-600:]
