"""The exceptions of sidestep.

SidestepError                 everything that we raise on purpose
|-- InputError (ValueError)   an argument cannot be used; says what was expected and what was given
|   |-- UnknownNameError      no policy, world or knob of that name; suggests the nearest
|   |-- MissingExtra          needs an extra that is not installed; names it
|   `-- NotFoundError         nothing of that name: in the storage, or no such file
|       |-- StudyNotFound     ... no such study
|       |-- TicketNotFound    ... no such ticket in this study
|       `-- AccountNotFound   ... no such person, token or link
|-- ConflictError             contradicts what is on record; nothing has changed
|   |-- StudyExists           a study of that name is there already
|   |-- AccountExists         a person of that name is there already
|   |-- AlreadyAnswered       the ticket has an answer; names it and the new value
|   |-- KeyReused             the key of another request
|   `-- StudyClosed           the study is closed to new questions and decisions; says what holds
|-- StorageError              the storage cannot be used as it is; says what to do
|   |-- StorageBusy           another program holds it; trying again is safe
|   |-- StorageFull           the disk is full; works again once there is space
|   |-- StorageReplaced       its file was deleted, replaced or emptied; nothing more is saved in it
|   |-- StorageLost           connection lost during a write: trying again with the same key is safe
|   |-- SchemaError           written by a newer version, or by another program
|   `-- RecordError           the chain of the record does not hold; names the event
|-- ServiceError              a service cannot be reached, or does not answer as it should
|   `-- AccessError           the caller has no permission
|-- CoreSetError              CORE-SET reached its cap; says why it cannot end
|-- ResultsError              results cannot be written
|-- FailedRunsError           some runs of a sweep failed; the others are kept
`-- ExecutorError             no process or cluster to run the jobs

UnreachedDirectionsWarning    the arms do not span the space; names the directions (a warning)
SlowRunWarning                many rounds are about to be played without a compiler (a warning)
UnsignedStateWarning          a state of an older version has no fingerprint of its policy (a warning)
DurabilityWarning             the database may lose acknowledged entries (a warning)
"""


class SidestepError(Exception):
    """Root of all exceptions of sidestep."""


class InputError(SidestepError, ValueError):
    """An argument is not valid; nothing has changed."""


class UnknownNameError(InputError):
    """A name that is not in the catalog."""


class MissingExtra(InputError, ImportError):
    """A feature needs packages that a bare installation does not have."""


class NotFoundError(InputError):
    """Nothing of that name is in the storage, or on the disk."""


class StudyNotFound(NotFoundError):
    """No study of that name."""


class TicketNotFound(NotFoundError):
    """No ticket of that number in this study."""


class AccountNotFound(NotFoundError):
    """No person, token or link of that name."""


class ConflictError(SidestepError):
    """The request contradicts the record; nothing has changed."""


class StudyExists(ConflictError):
    """A study of that name exists already."""


class AccountExists(ConflictError):
    """A person of that name exists already."""


class AlreadyAnswered(ConflictError):
    """The ticket has an answer or was withdrawn; changing it is a correction, with a reason."""


class KeyReused(ConflictError):
    """The idempotency key belongs to another request."""


class StudyClosed(ConflictError):
    """The study is closed to new questions, and to another decision."""


class StorageError(SidestepError):
    """The storage cannot be used as it is."""


class StorageBusy(StorageError):
    """Another program holds the storage; nothing was saved, and trying again is safe."""


class StorageFull(StorageError):
    """The disk is full; nothing was saved, and earlier entries can be read."""


class StorageReplaced(StorageError):
    """The file was deleted, replaced or emptied, or its log was lost; nothing more is saved in it."""


class StorageLost(StorageError):
    """The connection was lost during a write; trying again with the same key is safe."""


class SchemaError(StorageError):
    """The tables are of a newer version, or not ours."""


class RecordError(StorageError):
    """The chain of a record does not hold."""


class ServiceError(SidestepError):
    """A service cannot be reached or does not answer as it should; trying again is safe."""


class AccessError(ServiceError):
    """A service does not let this caller do this."""


class CoreSetError(SidestepError):
    """CORE-SET used up its rounds without finding independent protected vectors."""


class ResultsError(SidestepError):
    """Results cannot be written; what was finished is kept."""


class FailedRunsError(SidestepError):
    """Some runs of a sweep failed; the others are kept."""


class ExecutorError(SidestepError):
    """The processes or the cluster that should run the jobs do not."""


class UnreachedDirectionsWarning(UserWarning):
    """Some directions of the space cannot be learned from the arms at hand."""


class DurabilityWarning(UserWarning):
    """The database may lose acknowledged entries."""


class SlowRunWarning(UserWarning):
    """Many rounds are about to be played without a compiler."""


class UnsignedStateWarning(UserWarning):
    """A state without a fingerprint: it cannot be checked that this policy wrote it."""
