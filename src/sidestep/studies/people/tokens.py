"""Tokens with their roles: created and listed in the same way on the terminal, a page and over HTTP."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from sidestep.errors import InputError
from sidestep.studies.people.accounts import Accounts, Token
from sidestep.studies.people.grants import Grants
from sidestep.studies.people.roles import EVERYWHERE, Grant, checked_roles
from sidestep.studies.storage.events import utc_now

MOST_DAYS = 3650  # longest validity of a token that expires


def make_token(
    accounts: Accounts,
    grants: Grants,
    name: str,
    roles: Iterable[str],
    studies: Iterable[str],
    *,
    days: float | None,
    actor: str,
    by: str,
    key: str | None = None,
) -> tuple[Token, str | None]:
    """A new token and its secret; None if this key created the token before. No studies: all."""
    held, places = checked_roles(roles), list(studies)
    if days is not None and not 0 < days <= MOST_DAYS:
        raise InputError(f"days must be more than 0 and at most {MOST_DAYS}, got {days:g}")
    for study in places:
        grants.check_study(study)
    expires = None if days is None else utc_now() + timedelta(days=days)
    token, text = accounts.add_token(name, actor=by, expires=expires, key=key)
    if text is not None:
        for study in places or [EVERYWHERE]:
            for role in held:
                grants.give(Grant(token.id, study, role), actor=actor, by=by)
    return token, text


def token_to_json(grants: Grants, token: Token) -> dict[str, Any]:
    """A token as JSON, without its secret."""
    rights = grants.of(token.id)
    return {
        "id": token.id,
        "name": token.name,
        "roles": list(checked_roles({role for _, role in rights})) if rights else [],
        "studies": sorted({study for study, _ in rights}),
        "created": token.created,
        "expires": token.expires,
        "revoked": token.revoked,
    }
