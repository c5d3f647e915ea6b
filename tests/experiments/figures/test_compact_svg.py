"""A smaller SVG is the same picture: every text, every mark and every place to a hundredth of a point."""

import io
import re
import xml.etree.ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from sidestep.experiments.figures.compact_svg import compact
from sidestep.experiments.figures.styles import SETTINGS

DRAWN = ("path", "use", "text", "tspan", "clipPath", "rect")


@pytest.fixture(scope="module")
def both():
    """Lines, curved markers, a band, a formula and quotes as matplotlib writes them, and made smaller."""
    with mpl.rc_context(SETTINGS):
        figure = Figure(figsize=(4, 3))
        axis = figure.subplots()
        x = np.linspace(0, 9, 50)
        axis.plot(x, np.sin(x), marker="o", label='it\'s "5.12345" <b>')
        axis.fill_between(x, np.sin(x) - 0.1, np.sin(x) + 0.1, alpha=0.13)
        axis.set_title(r"$\theta_1$ at 0.00123456")
        axis.legend()
        file = io.BytesIO()
        figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue().decode()
    return text, compact(text)


def drawn(svg):
    """Every element that is seen, in order: its name, attributes and text."""
    found = [
        (one.tag.rpartition("}")[2], one.attrib, one.text) for one in ET.fromstring(svg).iter()
    ]
    return [(name, known, (text or "").strip()) for name, known, text in found if name in DRAWN]


def numbers(text):
    return np.array([float(word) for word in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)])


def test_a_smaller_picture_has_the_same_elements_texts_and_places(both):
    large, small = map(drawn, both)
    assert [(name, text) for name, _, text in small if name == "text"] == [
        (name, text) for name, _, text in large if name == "text"
    ]
    assert any('it\'s "5.12345" <b>' in str(text) for _, _, text in small)
    for (kind, before, _), (same, after, _) in zip(large, small, strict=True):
        assert (kind, set(before)) == (same, set(after))
        for name, value in before.items():
            if name in ("d", "x", "y", "transform"):
                np.testing.assert_allclose(numbers(after[name]), numbers(value), atol=0.0051)
            elif name != "style":
                assert after[name] == value


def test_lines_and_curves_keep_their_kind(both):
    for before, after in zip(*map(drawn, both), strict=True):
        kinds = [re.sub(r"[^MLCQz]", "", one[1].get("d", "")) for one in (before, after)]
        assert kinds[1] in (kinds[0], kinds[0].replace("L", ""))
        if set(kinds[0]) & {"C", "Q"}:
            assert kinds[1] == kinds[0]


def test_it_has_at_most_three_quarters_of_the_bytes(both):
    assert len(both[1]) < 0.75 * len(both[0])
