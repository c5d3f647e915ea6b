"""From traces to numbers.

Its files:

    run_facts   one run
    effects     effects of the played actions, from the traces alone
    summary     every policy on every world
    tuning      which point of a grid is shown
    bounds      measured regret beside the bounds
"""

from sidestep.core.validation import check_lab

check_lab("reading results", "polars")
