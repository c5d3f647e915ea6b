"""A study from a TOML file: the arguments of `Study.create`, checked key by key."""

import tomllib
from collections.abc import Mapping
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import Any

from sidestep.core.validation import did_you_mean
from sidestep.errors import InputError
from sidestep.studies.factors import Factor
from sidestep.studies.outcomes import Outcome
from sidestep.studies.plan import ASKING
from sidestep.studies.values import shown

WORDS = ("title", "vocabulary", "aim", "rank", "resolution", "policy", "knobs", "seed", "model")
KEYS = (*WORDS, *ASKING, "learn_from", "candidates", "factors", "target", "protected", "context")


def example() -> str:
    """An example file to start from."""
    return resources.files("sidestep.studies").joinpath("example.toml").read_text(encoding="utf-8")


def read_setup(path: Path) -> dict[str, Any]:
    """The arguments of `Study.create`; the path of a candidates table is relative to the file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(
            f"{path} must be a file that can be read, got: {error.strerror}"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} must be a TOML file, got: {error}") from error
    _check_keys(content, KEYS, str(path))
    for key in ("factors", "target"):
        if key not in content:
            raise InputError(f"{path} must have {key}, got none (see --example)")
    setup = {key: content[key] for key in (*WORDS, *ASKING) if key in content}
    setup["factors"] = _several(Factor, content["factors"], "factors")
    setup["context"] = _several(Factor, content.get("context", []), "context")
    setup["target"] = _one(Outcome, content["target"], "target")
    setup["protected"] = _several(Outcome, content.get("protected", []), "protected")
    if "learn_from" in content:
        setup["learn_from"] = _found_beside(path, content["learn_from"])
    if "candidates" in content:
        setup["candidates"] = path.parent / str(content["candidates"])
    return setup


def _found_beside(path: Path, given: Any) -> Any:
    """Names of studies, or paths of exports and tables relative to the file."""
    if isinstance(given, list):
        return [_found_beside(path, each) for each in given]
    beside = path.parent / str(given)
    return beside if beside.is_file() else given


def _several(kind: type, given: Any, what: str) -> list[Any]:
    if not isinstance(given, list):
        raise InputError(f"{what} must be written as [[{what}]] tables, got {shown(given)}")
    return [_one(kind, each, what) for each in given]


def _one(kind: type, given: Any, what: str) -> Any:
    if not isinstance(given, Mapping):
        raise InputError(f"{what} must be a table of keys, got {shown(given)}")
    _check_keys(given, [field.name for field in fields(kind)], what)
    if "name" not in given:
        raise InputError(f"every table of {what} must have a name, got {shown(dict(given))}")
    return kind(**given)


def _check_keys(given: Mapping[str, Any], known: Any, where: str) -> None:
    for key in given:
        if key not in known:
            hint = did_you_mean(key, known)
            raise InputError(f"{where} must have keys of {', '.join(known)}, got {key!r}{hint}")
