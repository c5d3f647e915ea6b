"""Who may do what: five roles, given to people and tokens for one study or for all of them."""

from collections.abc import Iterable
from typing import NamedTuple

from sidestep.errors import InputError
from sidestep.studies.values import shown

READ, ASK, TELL, CORRECT, ADMIN = "read", "ask", "tell", "correct", "admin"
ROLES = (READ, ASK, TELL, CORRECT, ADMIN)
EVERYWHERE = "*"  # instead of a study's name


class Grant(NamedTuple):
    """A role that a person or a token has in a study, or in all of them."""

    holder: str  # the id of a person or a token
    study: str
    role: str


class Rights(frozenset[tuple[str, str]]):
    """The roles of one holder, as (study, role)."""

    def allow(self, role: str, study: str) -> bool:
        """Whether the holder has this role; every role includes reading, and an admin has all roles."""
        here = self.roles(study)
        return bool(here) if role == READ else bool(here & {role, ADMIN})

    def roles(self, study: str) -> frozenset[str]:
        """The roles in a study, including roles for all studies."""
        return frozenset(role for where, role in self if where in (study, EVERYWHERE))

    @property
    def everywhere(self) -> bool:
        """Whether there is a role for all studies."""
        return any(where == EVERYWHERE for where, _ in self)


ALL_RIGHTS = Rights({(EVERYWHERE, ADMIN)})


def checked_roles(roles: Iterable[str]) -> tuple[str, ...]:
    """Roles that exist, each once, in their order."""
    wanted = tuple(roles)
    for role in wanted:
        if role not in ROLES:
            raise InputError(f"a role must be one of {', '.join(ROLES)}, got {shown(role)}")
    if not wanted:
        raise InputError(f"roles must be one or more of {', '.join(ROLES)}, got none")
    return tuple(role for role in ROLES if role in wanted)
