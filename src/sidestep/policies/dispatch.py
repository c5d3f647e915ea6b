"""Which compiled functions belong to which policy: a table that numba reads while it compiles.

A policy hands its knobs to compiled code as a NamedTuple of its own. `choose` and `choose_on_ball` are
names that the compiled whole-run loop of `experiments` calls, and `ask` by way of `decide_on_arms` and
`decide_on_ball`; the type of the knobs decides at compile time which policy's kernel stands behind them.
So there is one loop, every policy's arithmetic is written once, and the result is cached on disk (a loop
that took the kernels as arguments would be compiled anew in every process).
"""

from collections.abc import Callable
from typing import Any

from numba.extending import overload

from sidestep.core.arrays import FloatArray
from sidestep.core.compiled import kernel
from sidestep.core.forms import Menu, empty_forms

Kernel = Callable[..., Any]
_KERNELS: dict[type, tuple[Kernel, Kernel]] = {}  # by type of the knobs: over arms, on a solid


def choose(knobs: Any, evidence: Any, core_set: Any, menu: Any, forms: Any, luck: Any) -> Any:
    """(arm, index, phase, value); arm -1-j stands for e_{j+1}, which need not be on the menu."""
    return _KERNELS[type(knobs)][0](knobs, evidence, core_set, menu, forms, luck)


def choose_on_ball(knobs: Any, evidence: Any, core_set: Any, body: Any, luck: Any) -> Any:
    """(action, index, phase, value, bound) on a solid; bound is NaN where none is known."""
    return _KERNELS[type(knobs)][1](knobs, evidence, core_set, body, luck)


@kernel
def decide_on_arms(
    knobs: Any, evidence: Any, core_set: Any, columns: FloatArray, squared: FloatArray, luck: Any
) -> Any:
    """What `ask` calls: one decision over arms, of which nothing is kept."""
    forms = empty_forms(knobs.metric, core_set.size, squared.size)
    return choose(knobs, evidence, core_set, Menu(columns, squared), forms, luck)


@kernel
def decide_on_ball(knobs: Any, evidence: Any, core_set: Any, body: Any, luck: Any) -> Any:
    """The same on a solid."""
    return choose_on_ball(knobs, evidence, core_set, body, luck)


def register(kind: type, on_arms: Kernel, on_ball: Kernel, *, allocates: bool = True) -> None:
    """Let knobs of this NamedTuple type mean these kernels.

    Where `on_arms` allocates nothing and says so, it is compiled bare (core/compiled.py).
    The type needs a name of its own: to numba two NamedTuples of one name and the same fields are
    the same type. numba also compares the arguments of selector and implementation, annotations
    included: so neither has any.
    """
    _KERNELS[kind] = on_arms, on_ball

    @overload(choose, jit_options={"_nrt": allocates})
    def _choose(knobs, evidence, core_set, menu, forms, luck):  # type: ignore[no-untyped-def]
        if knobs.instance_class is kind:
            return lambda knobs, evidence, core_set, menu, forms, luck: on_arms(  # noqa: PLW0108
                knobs, evidence, core_set, menu, forms, luck
            )
        return None

    @overload(choose_on_ball, jit_options={"_nrt": True})
    def _choose_on_ball(knobs, evidence, core_set, body, luck):  # type: ignore[no-untyped-def]
        if knobs.instance_class is kind:
            return lambda knobs, evidence, core_set, body, luck: on_ball(  # noqa: PLW0108
                knobs, evidence, core_set, body, luck
            )
        return None
