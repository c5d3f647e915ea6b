"""A service from afar: `Client` opens studies that have the same verbs as `Study`.

    client = Client("http://127.0.0.1:8000", token="ss_...")
    study = client.open("bp-pilot-07")
    ticket = study.ask()
    study.tell(ticket.id, 138.0)          # durable once it returns

Needs nothing but Python's own library, and no service at this end.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

from sidestep.service.remote import RemoteStudy
from sidestep.service.wire import Wire, encoded
from sidestep.studies.factors import Factor
from sidestep.studies.frames import columns_of
from sidestep.studies.outcomes import Outcome
from sidestep.studies.plan import plan_from_config
from sidestep.studies.storage.store import Names
from sidestep.studies.study import user_of_the_machine

PAGE = 100


class Client:
    """Studies on a service, over HTTP. Safe to use from several threads.

    With `sidestep serve --demo` on this machine, which needs no token:

        import sidestep as ss

        with ss.Client("http://127.0.0.1:8000") as client:
            study = client.open("demo")
            print(study.ask())

    url        where the service is: http://127.0.0.1:8000
    token      ss_..., if the service needs one
    patience   seconds for which a request is repeated if the service does not answer
    timeout    seconds to wait for an answer
    """

    def __init__(
        self, url: str, token: str | None = None, *, patience: float = 30.0, timeout: float = 60.0
    ) -> None:
        self._wire = Wire(url, token, patience, timeout)

    def create(
        self,
        name: str,
        *,
        factors: Sequence[Factor],
        target: Outcome,
        protected: Sequence[Outcome] = (),
        candidates: Any = None,
        context: Sequence[Factor] = (),
        actor: str | None = None,
        key: str | None = None,
        **settings: Any,
    ) -> RemoteStudy:
        """Create a study, with the arguments of `Study.create`."""
        body: dict[str, Any] = {
            "name": name,
            "factors": [factor.to_config() for factor in factors],
            "target": target.to_config(),
            "protected": [outcome.to_config() for outcome in protected],
            "context": [factor.to_config() for factor in context],
            "actor": actor or user_of_the_machine(),
            **{each: value for each, value in settings.items() if value is not None},
        }
        if candidates is not None:
            body["candidates"] = columns_of(candidates, "candidates")
        self._wire.send("POST", "/v1/studies", body=encoded(body), key=key or uuid4().hex)
        return self.open(name, actor=actor)

    def open(self, name: str, *, actor: str | None = None) -> RemoteStudy:
        """The study of that name."""
        path = f"/v1/studies/{quote(name, safe='')}"
        found = self._wire.send("GET", f"{path}?candidates=true").json()
        plan = plan_from_config(found["config"], found["candidates"])
        return RemoteStudy(self._wire, path, found["study"], plan, actor or user_of_the_machine())

    def list(self) -> Names:
        """Names of the studies that you may see, in alphabetical order."""
        names: list[str] = []
        following: str | None = ""
        while following is not None:
            query = {"limit": PAGE} | ({"after": following} if following else {})
            page: Mapping[str, Any] = self._wire.send(
                "GET", f"/v1/studies?{urlencode(query)}"
            ).json()
            names += [study["study"] for study in page["studies"]]
            following = page["next"]
        return sorted(names)

    def close(self) -> None:
        """Close every connection."""
        self._wire.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
