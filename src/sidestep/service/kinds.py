"""The names and statuses of our exceptions over HTTP: one table, for service and client."""

from typing import NamedTuple

from sidestep import errors


class Kind(NamedTuple):
    """A kind of problem: its status, its name (the end of its `type`), its title."""

    status: int
    name: str
    title: str


KINDS: dict[type[errors.SidestepError], Kind] = {
    errors.InputError: Kind(422, "input", "What was sent cannot be used"),
    errors.UnknownNameError: Kind(422, "unknown-name", "There is nothing of that name"),
    errors.MissingExtra: Kind(501, "missing-extra", "This needs a package that is not installed"),
    errors.NotFoundError: Kind(404, "not-found", "There is nothing of that name"),
    errors.StudyNotFound: Kind(404, "study-not-found", "There is no such study"),
    errors.TicketNotFound: Kind(404, "ticket-not-found", "There is no such question"),
    errors.AccountNotFound: Kind(404, "account-not-found", "There is no such person or token"),
    errors.ConflictError: Kind(409, "conflict", "It contradicts what is on record"),
    errors.StudyExists: Kind(409, "study-exists", "There is a study of that name"),
    errors.AccountExists: Kind(409, "account-exists", "There is a person of that name"),
    errors.AlreadyAnswered: Kind(409, "already-answered", "The question has an answer"),
    errors.KeyReused: Kind(409, "key-reused", "The key belongs to another request"),
    errors.StudyClosed: Kind(409, "study-closed", "The study is closed"),
    errors.StorageError: Kind(503, "storage", "The storage cannot be used"),
    errors.StorageBusy: Kind(503, "storage-busy", "The storage is busy"),
    errors.StorageFull: Kind(507, "storage-full", "The disk is full"),
    errors.StorageReplaced: Kind(503, "storage-replaced", "The storage is not the one it was"),
    errors.StorageLost: Kind(503, "storage-lost", "The storage went away"),
    errors.SchemaError: Kind(503, "schema", "The storage is of another version"),
    errors.RecordError: Kind(500, "record", "The record is not as it was written"),
    errors.ServiceError: Kind(502, "service", "The service does not answer"),
    errors.AccessError: Kind(403, "forbidden", "This is not yours to do"),
    errors.CoreSetError: Kind(500, "core-set", "The policy came to no end"),
    errors.ResultsError: Kind(500, "results", "Results cannot be written"),
    errors.FailedRunsError: Kind(500, "failed-runs", "Some runs failed"),
    errors.ExecutorError: Kind(500, "executor", "There is nobody to run it"),
    errors.SidestepError: Kind(500, "sidestep", "Something went wrong"),
}


def kind_of(error: errors.SidestepError) -> Kind:
    """The kind of problem of one of our exceptions."""
    return next(KINDS[each] for each in type(error).__mro__ if each in KINDS)


def error_of(name: str, status: int) -> type[errors.SidestepError]:
    """The exception of a problem with that name; for an unknown name, by its status."""
    for error, kind in KINDS.items():
        if kind.name == name:
            return error
    if status in (401, 403):
        return errors.AccessError
    return errors.InputError if 400 <= status < 500 else errors.ServiceError
