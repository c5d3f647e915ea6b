"""How kernels are compiled, for those who ask. The only file that imports numba.

Live code never comes here: `ask` and `tell` run the kernels as they are. `simulate` compiles its loop
where numba is installed, because it plays millions of rounds.

What is compiled whole is an entry, such as the loop of one policy, with every kernel that it calls; its
machine code is cached on disk. A kernel inside is a part: numba types and lowers it once in a process,
and LLVM works on it in the entry alone. By itself numba would optimise every part, and translate it to
machine code, for its own sake and again in every caller of a caller: two thirds of the time.
"""

import gc
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, TypeVar, cast

from sidestep.core.jit import FAMILIES, KERNELS, LOOPS, Options, cache_folder
from sidestep.core.validation import check_lab

Function = TypeVar("Function", bound=Callable[..., Any])

SECONDS = 10  # what the loop of one policy takes to compile, roughly
_ENTRIES: set[Callable[..., Any]] = set()
_OF_A_LIBRARY = (  # what a part does in its own way, or asks of numba's own library
    "_optimize_final_module",
    "_finalize_final_module",
    "_finalize_dynamic_globals",
)
_TAUGHT: dict[Any, Any] = {}  # keeps alive what was registered with numba


def is_installed() -> bool:
    """Whether there is anything to compile with."""
    return find_spec("numba") is not None


@cache
def compiled(function: Function) -> Function:
    """The kernel compiled whole, with all that it calls, and cached on disk."""
    if _numba().config.DISABLE_JIT:  # NUMBA_DISABLE_JIT=1: kernels run as they are
        return function
    _teach()
    loop = cast(Function, LOOPS.get(function, function))
    _ENTRIES.add(loop)
    return compile_alone(loop, KERNELS[function])


def compile_alone(function: Function, options: Options) -> Function:
    """One function compiled with these options, and cached on disk."""
    numba = _numba()
    settings: Any = numba.config
    if settings.DISABLE_JIT:
        return function
    before = settings.CACHE_DIR
    settings.CACHE_DIR = cache_folder()  # read once, while the function is decorated
    try:
        entry: dict[str, Any] = {"cache": True, "nogil": options.nogil, "no_cfunc_wrapper": True}
        if knows_parts():
            entry["pipeline_class"] = _entry_compiler()
        return numba.njit(**entry, **_settings(options))(function)
    finally:
        settings.CACHE_DIR = before


@cache
def _numba() -> Any:
    """The numba module, set up to say when it compiles."""
    check_lab("compiled code", "numba")
    import numba  # noqa: PLC0415  (an extra, and half a second to import)
    from numba.core import event  # noqa: PLC0415

    class Announcer(event.Listener):  # type: ignore[misc]
        def __init__(self) -> None:
            self.collecting: list[
                bool
            ] = []  # whether garbage was collected before each compilation

        def on_start(self, event: Any) -> None:
            if event.data["dispatcher"].py_func in _ENTRIES:
                _announce()
                self.collecting.append(gc.isenabled())
                gc.disable()  # it would walk over all that numba builds, again and again

        def on_end(self, event: Any) -> None:
            if event.data["dispatcher"].py_func in _ENTRIES and self.collecting.pop():
                gc.enable()

    event.register("numba:compile", Announcer())
    return numba


@cache
def _announce() -> None:
    """Say once why the first run takes longer: on a terminal, not in a pipe or a notebook."""
    if sys.stderr.isatty():
        print(
            f"sidestep: compiling, about {SECONDS} s for each policy; compiled code is kept on disk",
            file=sys.stderr,
            flush=True,
        )


def _teach() -> None:
    """Let compiled code call every kernel that is known by now, and every family by type."""
    from numba import njit, types  # noqa: PLC0415
    from numba.core.typing.templates import infer_global  # noqa: PLC0415
    from numba.extending import overload  # noqa: PLC0415

    for function, options in list(KERNELS.items()):
        if function not in _TAUGHT:
            loop = LOOPS.get(function, function)
            _TAUGHT[function] = part = njit(**_part(options))(loop)
            part.get_call_template = _for_any_number(part.get_call_template)
            infer_global(function, types.Dispatcher(part))
    for selector, family in FAMILIES.items():
        for kind, function in family.items():
            if (selector, kind) not in _TAUGHT:
                _TAUGHT[selector, kind] = choose = _chosen(kind, function)
                overload(selector, jit_options=_part(KERNELS[function]), strict=False)(choose)


def _for_any_number(resolve: Callable[..., Any]) -> Callable[..., Any]:
    """Let numba compile a kernel for all numbers, not once more for each that is written in a call."""
    from numba import types  # noqa: PLC0415

    def resolve_for_any(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        return resolve(tuple(map(types.unliteral, arguments)), keywords)

    return resolve_for_any


def _chosen(kind: type, function: Callable[..., Any]) -> Callable[..., Any]:
    """What numba asks while it compiles a call of a family: the kernel, if the type is this one."""

    def choose(knobs: Any, *arguments: Any) -> Any:
        return function if getattr(knobs, "instance_class", None) is kind else None

    return choose


def _part(options: Options) -> dict[str, Any]:
    """Options of numba for a kernel that only compiled code calls."""
    part: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    if knows_parts():
        part["pipeline_class"] = _part_compiler(options.small)
    return part | _settings(options)


def _settings(options: Options) -> dict[str, Any]:
    """Options of numba. Every option is passed: a missing one is inherited from the caller.

    IEEE arithmetic: sums are taken in the order in which they are written, and 1/0 is infinite.
    """
    settings: dict[str, Any] = {
        "error_model": "numpy",
        "fastmath": {"contract"} if options.fma else False,
        "forceinline": options.inline,
    }
    if knows_refcounts():
        settings["_nrt"] = options.refcounts
    return settings


@cache
def knows_refcounts() -> bool:
    """Whether this numba can leave out reference counts: a private option, which costs speed alone."""
    from numba.core.options import DefaultOptions  # noqa: PLC0415

    return hasattr(DefaultOptions, "_nrt")


@cache
def knows_parts() -> bool:
    """Whether this numba builds its libraries as `_part_compiler` expects; if not, it takes longer."""
    from numba.core.codegen import JITCodeLibrary  # noqa: PLC0415
    from numba.core.compiler import Flags  # noqa: PLC0415

    return hasattr(Flags(), "_values") and all(hasattr(JITCodeLibrary, n) for n in _OF_A_LIBRARY)


@cache
def _entry_compiler() -> Any:
    """Numba's compiler, with less to translate to machine code.

    The wrapper that takes the arguments of Python apart, a seventh of the code of a run, is not
    optimised. Unused arguments of its parts are removed, as only the entry calls them: an array in a
    tuple is seven numbers or more, of which a kernel reads two or three.
    """
    from numba.core.codegen import JITCodeLibrary  # noqa: PLC0415
    from numba.core.codegen import ll as binding  # noqa: PLC0415
    from numba.core.compiler import Compiler  # noqa: PLC0415

    class Entry(JITCodeLibrary):  # type: ignore[misc]
        def add_ir_module(self, module: Any) -> None:
            for function in module.functions:
                if function.blocks and function.name.startswith("_ZN7cpython"):
                    function.attributes.add("optnone")
                    function.attributes.add("noinline")
            super().add_ir_module(module)

        def _optimize_final_module(self) -> None:
            super()._optimize_final_module()
            if not hasattr(self._codegen, "_pass_builder"):  # an older numba: all is handed on
                return
            for function in self._final_module.functions:
                if function.linkage == binding.Linkage.linkonce_odr and not function.is_declaration:
                    function.linkage = binding.Linkage.internal
            passes = binding.create_new_module_pass_manager()
            passes.add_dead_arg_elimination_pass()
            passes.run(self._final_module, self._codegen._pass_builder())

    class EntryCompiler(Compiler):  # type: ignore[misc]
        def define_pipelines(self) -> Any:
            state = self.state
            state.library = Entry(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.enable_object_caching()  # as numba does with a library of its own
            return super().define_pipelines()

    return EntryCompiler


@cache
def _part_compiler(small: bool) -> Any:
    """Numba's compiler, but for code that is only ever linked into the code of an entry."""
    from numba.core.codegen import JITCodeLibrary  # noqa: PLC0415
    from numba.core.compiler import Compiler  # noqa: PLC0415

    class Part(JITCodeLibrary):  # type: ignore[misc]
        def add_ir_module(self, module: Any) -> None:
            for function in module.functions if small else ():
                if function.blocks:  # else it is another's
                    function.attributes.add("optsize")
                    function.attributes.add("noinline")
            super().add_ir_module(module)

        def _optimize_final_module(self) -> None:
            """Leave that to the entry."""

        def _finalize_final_module(self) -> None:
            """Be ready to be linked, without machine code."""
            self._finalize_dynamic_globals()
            self._finalized = True

        @property
        def codegen(self) -> Any:
            """Gets the address of the environment in `set_env`; code that is never called has none."""
            return self

        def set_env(self, name: str, environment: Any) -> None:
            pass

    class PartCompiler(Compiler):  # type: ignore[misc]
        def define_pipelines(self) -> Any:
            state = self.state
            state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
            return super().define_pipelines()

    return PartCompiler
