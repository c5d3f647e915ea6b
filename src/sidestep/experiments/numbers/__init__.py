"""From traces to numbers: one run, effects, every policy on every world, bounds."""
