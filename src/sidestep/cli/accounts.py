"""`sidestep user ...` and `sidestep token ...`: accounts and roles."""

import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sidestep.cli.serve import need_extra
from sidestep.cli.terminal import DEFAULT, AsJson, Storage

if TYPE_CHECKING:
    from sidestep.studies.people.accounts import Accounts
    from sidestep.studies.people.grants import Grants

TERMINAL = "terminal"  # author of changes made on the command line

users = typer.Typer(
    help="Manage the people who may log in.", no_args_is_help=True, rich_markup_mode=None
)
tokens = typer.Typer(
    help="Manage access tokens for programs.", no_args_is_help=True, rich_markup_mode=None
)

Person = Annotated[str, typer.Argument(help="Name of the person.")]
Roles = Annotated[
    list[str] | None,
    typer.Option("--role", help="read, ask, tell, correct or admin; may be repeated."),
]
Studies = Annotated[
    list[str] | None, typer.Option("--study", help="Only in this study; may be repeated.")
]


@users.command("add")
def add_user(
    name: Person,
    admin: Annotated[bool, typer.Option("--admin", help="Every role in every study.")] = False,
    role: Roles = None,
    study: Studies = None,
    storage: Storage = DEFAULT,
) -> None:
    """Add a person. The password is prompted for, or read from a pipe.

    Example: sidestep user add ada --admin
             sidestep user add lab --role tell --study bp-pilot-07
    """
    from sidestep.studies.people.roles import ADMIN, EVERYWHERE, Grant, checked_roles

    roles = checked_roles([*([ADMIN] if admin else []), *(role or [])])
    accounts, grants = _opened(storage)
    for place in study or []:
        grants.check_study(place)
    person = accounts.add_person(name, _password(), actor=TERMINAL)
    for place in [EVERYWHERE] if admin or not study else study:
        for each in roles:
            grants.give(Grant(person.id, place, each), actor=TERMINAL, by=TERMINAL)
    print(f"{name} may log in.")


@users.command("list")
def list_users(storage: Storage = DEFAULT, as_json: AsJson = False) -> None:
    """List the people who may log in, and their roles.

    Example: sidestep user list
    """
    accounts, grants = _opened(storage)
    rows = [
        {"name": person.name, "created": person.created, "roles": sorted(grants.of(person.id))}
        for person in accounts.people()
    ]
    if as_json:
        print(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        print(f"{row['name']:<24} {_roles_text(row['roles'])}")


@users.command("remove")
def remove_user(name: Person, storage: Storage = DEFAULT) -> None:
    """Remove a person; their entries stay in the record.

    Example: sidestep user remove ada
    """
    _opened(storage)[0].remove_person(name, actor=TERMINAL)
    print(f"{name} may no longer log in.")


@users.command("password")
def change_password(name: Person, storage: Storage = DEFAULT) -> None:
    """Set a new password. Every session of the person ends.

    Example: sidestep user password ada
    """
    _opened(storage)[0].set_password(name, _password(), actor=TERMINAL)
    print(f"{name} has another password.")


@users.command("logout")
def end_sessions(name: Person, storage: Storage = DEFAULT) -> None:
    """End every session of a person, on every server.

    Example: sidestep user logout ada
    """
    accounts, _ = _opened(storage)
    accounts.end_sessions(accounts.known(name), actor=TERMINAL)
    print(f"{name} is logged out everywhere.")


@users.command("grant")
def grant(name: Person, role: Roles, study: Studies = None, storage: Storage = DEFAULT) -> None:
    """Give a person roles in a study, or in all without --study.

    Example: sidestep user grant lab --role tell --study bp-pilot-07
    """
    _change("give", name, role or [], study, storage)


@users.command("revoke")
def revoke(name: Person, role: Roles, study: Studies = None, storage: Storage = DEFAULT) -> None:
    """Take roles from a person.

    Example: sidestep user revoke lab --role tell --study bp-pilot-07
    """
    _change("take", name, role or [], study, storage)


@tokens.command("create")
def create_token(
    name: Annotated[
        str, typer.Argument(help="Name of the token; entries made with it carry this name.")
    ],
    role: Roles = None,
    study: Studies = None,
    days: Annotated[
        float | None, typer.Option(help="Days until it expires; never by default.", min=0)
    ] = None,
    storage: Storage = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Create a token for a program; it is shown once.

    Example: sidestep token create lims --role tell --study bp-pilot-07 --days 90
    """
    from sidestep.studies.people.tokens import make_token

    accounts, grants = _opened(storage)
    token, text = make_token(
        accounts, grants, name, role or [], study or [], days=days, actor=TERMINAL, by=TERMINAL
    )
    if as_json:
        print(json.dumps({"id": token.id, "name": token.name, "token": text}))
        return
    print(text)
    print("Note it now: it is not shown again.", file=sys.stderr)


@tokens.command("list")
def list_tokens(storage: Storage = DEFAULT, as_json: AsJson = False) -> None:
    """List tokens with their roles and expiry, but not the secret.

    Example: sidestep token list
    """
    from sidestep.studies.people.tokens import token_to_json

    accounts, grants = _opened(storage)
    rows = [token_to_json(grants, token) for token in accounts.tokens()]
    if as_json:
        print(json.dumps(rows, ensure_ascii=False))
        return
    for row in rows:
        state = "revoked" if row["revoked"] else f"until {row['expires'] or 'revoked'}"
        print(
            f"{row['id']}  {row['name']:<20} {', '.join(row['roles'])} in "
            f"{', '.join(row['studies'])}; {state}"
        )


@tokens.command("revoke")
def revoke_token(
    token: Annotated[str, typer.Argument(help="Id of the token, from `token list`.")],
    storage: Storage = DEFAULT,
) -> None:
    """Revoke a token.

    Example: sidestep token revoke 3f9a1c22b870
    """
    _opened(storage)[0].revoke_token(token, actor=TERMINAL)
    print(f"token {token} is revoked.")


def _change(
    verb: str, name: str, roles: list[str], studies: list[str] | None, storage: str
) -> None:
    from sidestep.studies.people.roles import EVERYWHERE, Grant, checked_roles

    accounts, grants = _opened(storage)
    person = accounts.known(name)
    for place in studies or [EVERYWHERE]:
        for role in checked_roles(roles):
            change = Grant(person.id, place, role)
            getattr(grants, verb)(change, actor=TERMINAL, by=TERMINAL)
    print(f"{name}: {_roles_text(sorted(grants.of(person.id)))}")


def _roles_text(roles: Any) -> str:
    places: dict[str, list[str]] = {}
    for study, role in roles:
        places.setdefault("all studies" if study == "*" else study, []).append(role)
    return "; ".join(f"{', '.join(held)} in {where}" for where, held in places.items()) or "nothing"


def _password() -> str:
    """The hash of a password that was typed twice, or read from a pipe."""
    need_extra()
    from sidestep.service.passwords import hashed

    if not sys.stdin.isatty():
        return hashed(sys.stdin.readline().rstrip("\n"))
    return hashed(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))


def _opened(storage: str) -> "tuple[Accounts, Grants]":
    from sidestep.studies.people.accounts import Accounts
    from sidestep.studies.people.grants import Grants
    from sidestep.studies.storage.sql import SqlStore

    store = SqlStore.open(storage)
    return Accounts(store), Grants(store)
