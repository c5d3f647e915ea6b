"""Draws from the prior of a study, as a picture: python benchmarks/prior_draws.py docs/figures/prior.png

Effects of one of three factors on one outcome, the others at the baseline, of size c = 1.6: as they are
under shape="straight", under shape="smooth", and by default with the own effects of nine settings.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from PIL import Image

from sidestep import Factor
from sidestep.studies.learning.features import Features
from sidestep.studies.learning.prior import S0, Prior, prior_of

SIZE = 1.6
DRAWS = 6
LINES = ("-", "--", ":", "-.", (0, (5, 1)), (0, (1, 1)))
GREYS = ("#000000", "#333333", "#555555", "#777777", "#222222", "#666666")
PANELS = (
    ("straight", 'shape="straight"'),
    ("smooth", 'shape="smooth": r = .3 or .6'),
    (None, "default: and own effects of settings"),
)


def drawn(prior: Prior, doses: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """An effect as a curve, and own effects, at doses of the first factor; in half-ranges."""
    axes = [Factor(name, 0, 40, step=0.25, baseline=0) for name in ("dose", "second", "third")]
    features = Features(axes)
    rows = features.rows([{"dose": float(d), "second": 0.0, "third": 0.0} for d in doses])
    bend = rng.choice(prior.bends.values, p=np.exp(prior.bends.log))
    own = rng.choice(prior.owns.values, p=np.exp(prior.owns.log))
    variance = prior.variances(features, bend, 1.0)
    weights = SIZE * S0 * np.sqrt(variance) * rng.standard_normal(len(variance))
    jumps = own * SIZE * S0 * rng.standard_normal(len(doses))
    return rows @ weights, jumps - jumps[0]


def main(path: Path) -> None:
    figure, panels = plt.subplots(
        1, 3, figsize=(8.4, 2.7), dpi=110, sharey=True, layout="constrained"
    )
    doses = np.arange(0, 40.1, 0.5)
    for axes, (shape, words) in zip(panels, PANELS, strict=True):
        rng = np.random.default_rng(5)
        for number in range(DRAWS):
            curve, jumps = drawn(prior_of(shape), doses, rng)
            axes.plot(doses, curve, linestyle=LINES[number], color=GREYS[number], lw=1.2)
            if shape is None:
                at = np.arange(0, len(doses), 10)
                axes.plot(doses[at], (curve + jumps)[at], "o", color=GREYS[number], ms=3)
        axes.axhline(0, color="#bbbbbb", lw=0.6, zorder=0)
        axes.set_title(words, fontsize=9)
        axes.set_xlabel("dose", fontsize=8)
        axes.tick_params(labelsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("effect, half-ranges", fontsize=8)
    figure.canvas.draw()
    picture = Image.fromarray(np.asarray(figure.canvas.buffer_rgba())).convert("L")
    picture.quantize(16).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
