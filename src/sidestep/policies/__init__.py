"""The policies: frozen knobs with init, ask and tell. Start with base.py.

What a policy is:

    base                   Decision, Policy, and the checks of a policy of yours
    state                  what a policy has learned, as a value and as text
    builtin                what the policies of this package have in common
    shared_knobs           knobs and rank review of the sampling policies
    catalog                every policy by name

The policies:

    directed_thompson      Thompson sampling that buys information; the default
    information_directed   expected regret against information, every round
    protected_thompson     Thompson sampling of the projected reward
    thompson_tolerances    how the Thompson policies choose within tolerances
    protected_linucb       Alg. 2 of the paper
    round_robin            baseline of the paper: protected vectors take turns
    epsilon_greedy         the paper's simplest baseline
    explore_commit         baseline: explore, then commit
    oful                   baseline: optimism that ignores protection
    uniform                baseline: a random action and a random vector

How they are asked:

    batches                several queries at once, and past records
    restrictions           restrictions of one ask
    advice                 reasons, recommendations, what is still open
"""

from sidestep.policies.base import Decision, Policy
from sidestep.policies.catalog import POLICIES, from_config
from sidestep.policies.state import State

__all__ = ["POLICIES", "Decision", "Policy", "State", "from_config"]
