"""From traces to numbers: one run, effects, every policy on every world, bounds."""

from sidestep.core.validation import check_lab

check_lab("reading results", "polars")
