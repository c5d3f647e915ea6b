"""The exceptions of sidestep.

SidestepError                 everything that we raise on purpose
|-- InputError (ValueError)   what came in cannot be used; says what was expected and what came
|   `-- UnknownNameError      no policy, world or knob of that name; suggests the nearest
|-- CoreSetError              CORE-SET reached its cap; says why it cannot end
|-- ResultsError              results cannot be written
|-- FailedRunsError           some runs of a sweep broke off; the others are kept
`-- ExecutorError             there is nobody to run the jobs

UnreachedDirectionsWarning    the arms do not span the space; names the directions (a warning)
"""


class SidestepError(Exception):
    """Root of every exception of ours."""


class InputError(SidestepError, ValueError):
    """Something handed in is not usable; nothing has changed."""


class UnknownNameError(InputError):
    """A name that is not in the catalog."""


class CoreSetError(SidestepError):
    """CORE-SET used up its rounds without finding independent protected vectors."""


class ResultsError(SidestepError):
    """Results cannot be written; what was finished is kept."""


class FailedRunsError(SidestepError):
    """Some runs of a sweep broke off; the others are kept."""


class ExecutorError(SidestepError):
    """The processes or the cluster that should run the jobs do not."""


class UnreachedDirectionsWarning(UserWarning):
    """Some directions of the space cannot be learned from the arms at hand."""
