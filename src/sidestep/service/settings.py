"""The settings: from flags, the environment (SIDESTEP_...) or a TOML file, in this order."""

import ipaddress
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from sidestep.core.validation import did_you_mean
from sidestep.errors import InputError

PREFIX = "SIDESTEP_"
CONFIG = "SIDESTEP_CONFIG"  # names the file
HIDDEN = "(hidden)"


def _words(value: Any) -> Any:
    """A list of words from text, as in an environment variable: a, b."""
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",") if word.strip())
    return tuple(value) if isinstance(value, list) else value


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]


class Settings(BaseModel):
    """Everything that can be set, checked."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    storage: str = Field("sidestep.db", description="a file, sqlite:///... or postgresql://...")
    host: str = Field("127.0.0.1", description="the address to listen on")
    port: int = Field(8000, ge=0, le=65535, description="the port; 0: any that is free")
    names: Words = Field(
        (), description="host names that are answered; none: all, or loopback without login"
    )
    proxies: str = Field("", description="addresses whose X-Forwarded headers are believed")
    https: bool = Field(False, description="cookies only over HTTPS; set it behind a TLS proxy")
    threads: int = Field(
        40, ge=1, le=1000, description="requests that are worked on at once; a quarter only reads"
    )
    connections: int = Field(
        1000, ge=10, le=100_000, description="connections at once, as far as open files allow"
    )
    streams: int = Field(100, ge=0, le=10_000, description="listeners to events at once")
    body_limit: int = Field(1_000_000, ge=1000, description="largest request, in bytes")
    import_limit: int = Field(50_000_000, ge=1000, description="largest import, in bytes")
    session_hours: float = Field(12, gt=0, le=8760, description="how long a login lasts")
    link_days: float = Field(14, gt=0, le=365, description="how long a link to one question lasts")
    webhook: str = Field("", description="an address that is told of every answer; none: nobody")
    webhook_hosts: Words = Field((), description="hosts that a webhook may be at")
    webhook_secret: str = Field("", description="signs what the webhook is told", repr=False)
    log_level: str = Field(
        "info", pattern="^(debug|info|warning|error)$", description="what is logged"
    )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the service."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


class Shown(NamedTuple):
    """A setting as `serve --settings` lists it."""

    name: str
    value: str
    source: str
    about: str


class Loaded(NamedTuple):
    """Settings, and where each came from."""

    settings: Settings
    sources: Mapping[str, str]

    def shown(self) -> list[Shown]:
        """Every setting; a secret or a password is not shown."""
        return [
            Shown(name, _text(self.settings, name), self.sources[name], field.description or "")
            for name, field in Settings.model_fields.items()
        ]


def load(
    flags: Mapping[str, Any],
    config: Path | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Loaded:
    """The settings; a flag overrides the environment, the environment the file, the file the default."""
    named = environment.get(CONFIG)
    path = config or (Path(named) if named else None)
    sources = dict.fromkeys(Settings.model_fields, "usual")
    values: dict[str, Any] = {}
    for source, given in (
        (str(path), _from_file(path) if path else {}),
        ("environment", _from_environment(environment)),
        ("flag", {name: value for name, value in flags.items() if value is not None}),
    ):
        values |= given
        sources |= dict.fromkeys(given, source)
    return Loaded(_checked(values, sources), sources)


def _checked(values: Mapping[str, Any], sources: Mapping[str, str]) -> Settings:
    try:
        return Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        said = first["msg"].replace("Input should be", "must be").replace("Value error, ", "")
        raise InputError(f"{name} ({sources.get(name)}) {said}, got {first['input']!r}") from None


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    names = {PREFIX + name.upper(): name for name in Settings.model_fields}
    return {names[key]: value for key, value in environment.items() if key in names and value}


def _from_file(path: Path) -> dict[str, Any]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} must be a file that can be read, got {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} must be a TOML file, got {error}") from None
    for name in content:
        if name not in Settings.model_fields:
            hint = did_you_mean(name, Settings.model_fields)
            raise InputError(f"{path} must have settings of serve, got {name!r}{hint}")
    return content


def _text(settings: Settings, name: str) -> str:
    value = getattr(settings, name)
    if name == "webhook_secret":
        return HIDDEN if value else ""
    if name == "storage" and "://" in value and "@" in value:
        scheme, _, rest = value.partition("://")
        return f"{scheme}://{HIDDEN}@{rest.rpartition('@')[2]}"
    return ", ".join(value) if isinstance(value, tuple) else str(value)
