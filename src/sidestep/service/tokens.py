"""Tokens for programs: made, listed and revoked by whoever is an admin of all studies."""

from fastapi import APIRouter, Request, Response

from sidestep.service import answers as out
from sidestep.service.auth import Door
from sidestep.service.bodies import StrictRoute
from sidestep.service.replies import json_reply
from sidestep.service.routes import Key, Owner, shown
from sidestep.service.schemas import NewToken
from sidestep.studies.people.tokens import make_token, token_to_json

tokens = APIRouter(prefix="/v1", route_class=StrictRoute)


@tokens.get("/tokens", responses=shown(out.TokensOut), summary="Every token")
def listed(request: Request, caller: Owner) -> Response:
    """Every token: what it may do, where, and until when; never what to show."""
    door: Door = request.app.state.door
    return json_reply(
        {"tokens": [token_to_json(door.grants, token) for token in door.accounts.tokens()]}
    )


@tokens.post("/tokens", status_code=201, responses=shown(out.TokenOut, 201), summary="Make a token")
def made(request: Request, new: NewToken, caller: Owner, key: Key = None) -> Response:
    """Make a token. What to show is said once: asked again with the same key it is not said again."""
    door: Door = request.app.state.door
    token, text = make_token(
        door.accounts,
        door.grants,
        new.name,
        new.roles,
        new.studies,
        days=new.days,
        actor=caller.signs(),
        by=caller.id,
        key=key,
    )
    return json_reply({**token_to_json(door.grants, token), "token": text}, 201)


@tokens.delete("/tokens/{token}", responses=shown(out.TokenOut), summary="Revoke a token")
def revoked(request: Request, token: str, caller: Owner) -> Response:
    """No more use of a token; the same again changes nothing."""
    door: Door = request.app.state.door
    gone = door.accounts.revoke_token(token, actor=caller.id)
    return json_reply(token_to_json(door.grants, gone))
