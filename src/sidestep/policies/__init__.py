"""The players: one algorithm a file; frozen knobs, init / ask / tell. Start with base.py."""

from sidestep.policies.base import Decision, Policy, State
from sidestep.policies.catalog import POLICIES, from_config

__all__ = ["POLICIES", "Decision", "Policy", "State", "from_config"]
