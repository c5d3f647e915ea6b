"""The policies: one algorithm per file; frozen knobs, init / ask / tell. Start with base.py."""

from sidestep.policies.base import Decision, Policy
from sidestep.policies.catalog import POLICIES, from_config
from sidestep.policies.state import State

__all__ = ["POLICIES", "Decision", "Policy", "State", "from_config"]
