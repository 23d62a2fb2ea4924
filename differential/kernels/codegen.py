"""Object code of kernels, made by Numba and LLVM: once, for any processor, and free of Numba.

Numba compiles each function that a kernel calls as if Python could call it: it optimises the function together with
what that calls, and makes machine code of it. Of nested functions the innermost are optimised again for each caller.
Here the functions only become LLVM's intermediate code. A kernel's code is linked once, with every function that the
kernel reaches, and optimised and emitted once. Kernels that it calls are not linked but named, and found when it is
loaded.

This is a target of Numba's of its own (`numba.core.target_extension`), so functions that the program compiles with
Numba are not affected. The object code calls nothing of Numba: `runtime.py` has what arrays and Python's calls need,
and exceptions are plain data (`_Conventions`). So a process that loads it does not import Numba, of any version.

Importing this module imports Numba. It relies on parts of Numba that are not public, from Numba 0.62 on. If a version
changes them, this module fails, and `compile.py` reports the version.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import inspect
import operator
from collections.abc import Callable, Iterator
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import _dynfunc
from numba.core import (
    callconv,
    compiler,
    compiler_machinery,
    cpu,
    errors,
    extending,
    registry,
    sigutils,
    target_extension,
    targetconfig,
    typed_passes,
    types,
    typing,
    untyped_passes,
)
from numba.core.compiler_lock import global_compiler_lock
from numba.core.decorators import jit
from numba.core.runtime import rtsys
from numba.np import arrayobj

from differential.kernels.bridge import add_bridge
from differential.kernels.library import codegen_of
from differential.kernels.lowering import REGISTRY, Lowering, place_of
from differential.kernels.processor import Processor
from differential.kernels.signature import ARRAYS, Signature

TARGET = "differential"
_REFUSES = ctypes.cast(ctypes.pythonapi.PyErr_NoMemory, ctypes.c_void_p).value
"""The entry point for Python that Numba asks of each function: it raises. Nothing calls it."""


class _Conventions(callconv.CPUCallConv):  # type: ignore[misc]
    """Numba's convention for calls, with exceptions that are data: names, and values that are known when raised."""

    def call_function(self, builder: Any, callee: Any, *arguments: Any, **attributes: Any) -> Any:
        builder.module.calls[callee.name] += 1
        return super().call_function(builder, callee, *arguments, **attributes)

    def build_excinfo_struct(self, exc: Any, exc_args: Any, loc: Any, func_name: Any) -> Any:
        values = [None if isinstance(each, ir.Value) else (each,) for each in exc_args or ()]
        return exc.__module__, exc.__qualname__, tuple(values)

    def set_dynamic_user_exc(
        self, builder: Any, exc: Any, exc_args: Any, nb_types: Any, loc: Any = None, func_name: Any = None
    ) -> None:
        for each in nb_types:
            if each is not None and types.unliteral(each) not in (types.int64, types.uint64):
                raise errors.TypingError(f"kernels raise exceptions with integers of 64 bits and text, not with {each}")
        super().set_dynamic_user_exc(builder, exc, exc_args, nb_types, loc, func_name)

    def emit_unwrap_dynamic_exception_fn(self, module: Any, st_type: Any, nb_types: Any) -> Any:
        return ir.Constant(ir.IntType(8).as_pointer(), None)  # `Loader` reads the values


class _Context(cpu.CPUContext):  # type: ignore[misc]
    """Numba's context for compiling, with our code and our conventions."""

    @global_compiler_lock  # type: ignore[untyped-decorator]
    def init(self) -> None:
        # The functions that count references are compiled for the target that needs them first. Numba's own runs them.
        rtsys.initialize(registry.cpu_target.target_context)
        super().init()
        self._internal_codegen = codegen_of(Processor.of_host())

    def refresh(self) -> None:
        super().refresh()
        self.install_registry(REGISTRY)  # after Numba's, since of implementations for the same types the last is used

    # A pair is the next item of an iterator, and whether there is one. Numba copies it to the stack to read either.

    def pair_first(self, builder: Any, val: Any, ty: Any) -> Any:
        return builder.extract_value(val, place_of(ty, "first"))

    def pair_second(self, builder: Any, val: Any, ty: Any) -> Any:
        return builder.extract_value(val, place_of(ty, "second"))

    @property
    def call_conv(self) -> Any:
        return _Conventions(self)

    def get_executable(self, library: Any, fndesc: Any, env: Any) -> Any:
        return _dynfunc.make_function(fndesc.lookup_module(), fndesc.qualname, "", _REFUSES, env, (library,))


class _Function(types.Function):  # type: ignore[misc]
    """The type of a function of Numba's own, which remembers what its calls return.

    Types are inferred until none changes, and each time Numba looks for the implementation of each `+` among all that
    Numba has. Types are unique objects, so they are compared by identity; the memo holds them, so that their identities
    are not reused. Functions that Numba compiles for a call are compiled by the settings of the caller.
    """

    def __init__(self, templates: Any) -> None:
        super().__init__(templates)
        self._known: dict[tuple[Any, ...], tuple[Any, Any, Any]] = {}

    def augment(self, other: Any) -> Any:
        return _Function(self.templates + other.templates) if other.typing_key == self.typing_key else None

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return super().get_call_type(context, args, kws)
        if self._is_operator() and args and isinstance(args[0], (types.Number, types.Boolean, types.Array)):
            args = tuple([types.unliteral(each) for each in args])  # only items of tuples depend on constants
        flags = targetconfig.ConfigStack.top_or_none()
        place = (flags and (flags.nrt, flags.forceinline, flags.error_model), *map(id, args))
        if place not in self._known:
            signature = super().get_call_type(context, args, kws)
            self._known[place] = signature, self._impl_keys[signature.args], args
        signature, self._impl_keys[signature.args], _ = self._known[place]
        return signature

    def _is_operator(self) -> bool:
        return getattr(self.typing_key, "__module__", None) == operator.add.__module__


extending.register_model(_Function)(extending.models.OpaqueModel)


class _TypingContext(typing.Context):  # type: ignore[misc]
    """Numba's context for types, with functions that remember."""

    def _insert_global(self, gv: Any, gty: Any) -> None:
        super()._insert_global(gv, _Function(gty.templates) if type(gty) is types.Function else gty)


class _CPUTarget(registry.CPUTarget):  # type: ignore[misc]
    @functools.cached_property
    def _toplevel_target_context(self) -> Any:
        return _Context(self.typing_context, self._target_name)

    @functools.cached_property
    def _toplevel_typing_context(self) -> Any:
        return _TypingContext()


class _Kernels(target_extension.CPU):  # type: ignore[misc]
    """The target: a processor, so that what Numba has for processors is valid for it."""


class _Dispatcher(registry.CPUDispatcher):  # type: ignore[misc]
    """Numba's dispatcher, without files, and without measuring how long locks are held.

    Each nested compilation would add a measurement to every lock. The lock of the compiler is held by the caller.
    """

    targetdescr = _CPUTarget(TARGET)

    def compile(self, sig: Any) -> Any:
        args, return_type = sigutils.normalize_signature(sig)
        if tuple(args) not in self.overloads:
            with self._compiling_counter:
                try:
                    compiled = self._compiler.compile(args, return_type)
                except errors.ForceLiteralArg as error:
                    raise error.bind_fold_arguments(
                        lambda *given: self._compiler.fold_argument_types(*given)[1]
                    ) from None
                self.add_overload(compiled)
        return self.overloads[tuple(args)].entry_point


class _Flags(compiler.Flags):  # type: ignore[misc]
    """The settings by which a function is compiled.

    Numba looks up implementations of operations by them, tens of thousands of times, and hashes and compares all
    options each time. Here, two options are hashed, and those that were set are compared first.
    """

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Flags):
            return NotImplemented
        return bool(self._values == other._values or self.values() == other.values())

    def __hash__(self) -> int:
        return hash((self.nrt, self.forceinline))


class _Compiler(compiler.Compiler):  # type: ignore[misc]
    """All of Numba's passes: for the functions with which Numba implements operations."""

    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
    ) -> None:
        flags = _Flags(flags)
        flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True  # only kernels call these functions
        super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)


class _KernelCompiler(_Compiler):
    """The passes that kernels need.

    Left out are those for closures, context managers, loops over literals, branches that types decide, and expressions
    of whole arrays. A kernel that has one of these might not compile.
    """

    def define_pipelines(self) -> list[Any]:
        passes = compiler_machinery.PassManager("kernels")
        for each in (
            untyped_passes.TranslateByteCode,
            untyped_passes.FixupArgs,
            untyped_passes.GenericRewrites,
            untyped_passes.RewriteDynamicRaises,
            untyped_passes.ReconstructSSA,
            typed_passes.NopythonTypeInference,
            typed_passes.PreLowerStripPhis,
            *([typed_passes.IRLegalization] if self.state.flags.nrt else []),  # inserts where references are released
            Lowering,
            typed_passes.NoPythonBackend,
        ):
            passes.add_pass(each, each.name())
        passes.finalize()
        return [passes]


target_extension.target_registry[TARGET] = _Kernels
target_extension.dispatcher_registry[_Kernels] = _Dispatcher
target_extension.jit_registry[_Kernels] = functools.partial(jit, _target=TARGET, pipeline_class=_Compiler)


@extending.overload(arrayobj.raise_with_shape_context, target=TARGET)  # type: ignore[untyped-decorator]
def _refuse_shapes(src_shapes: Any, index_shape: Any) -> Callable[[Any, Any], None]:
    """Replace an error message that would put Numba's text formatting into each kernel."""

    def refuse(src_shapes: Any, index_shape: Any) -> None:
        raise ValueError("the arrays of an assignment differ in shape")

    return refuse


def jitted(function: Any, **options: Any) -> Any:
    """Return a dispatcher of `function`, or of the function of a dispatcher; only kernels can call it."""
    known = {name: value for name, value in options.items() if hasattr(cpu.CPUTargetOptions, name)}
    return jit(
        getattr(function, "py_func", function),
        _target=TARGET,
        nogil=True,
        error_model="numpy",
        pipeline_class=_KernelCompiler,
        **known,
    )


def unliteral(template: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a dispatcher's `get_call_template` for types without values.

    Otherwise Numba would compile the function again for each constant among its arguments. Templates are remembered,
    because Numba asks for that of each call several times.
    """
    known: dict[tuple[Any, ...], Any] = {}

    def remembered(args: Any, kws: Any) -> Any:
        given = tuple([types.unliteral(each) for each in args])
        if kws:
            return template(given, kws)
        if given not in known:
            known[given] = template(given, kws)
        return known[given]

    return remembered


def external(symbol: str, signature: Signature) -> Any:
    """Return, for use inside kernels, the kernel that has this symbol when it is loaded."""
    known = _signature(signature)

    def call(typing_context: Any, *arguments: Any) -> Any:
        def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
            kind = context.call_conv.get_function_type(known.return_type, known.args)
            found = builder.module.globals.get(symbol)
            callee = found if found is not None else ir.Function(builder.module, kind, symbol)
            status, result = context.call_conv.call_function(builder, callee, known.return_type, known.args, values)
            with builder.if_then(status.is_error, likely=False):
                context.call_conv.return_status_propagate(builder, status)
            return result

        return known, generate

    names = ["typing_context", *(f"argument{place}" for place in range(len(signature.arguments)))]
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    call.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
    return extending.intrinsic(call)


def object_codes(
    function: Any, symbol: str, signature: Signature, processors: list[Processor], is_bulk: bool
) -> list[tuple[bytes, list[str]]]:
    """Return for each processor a kernel's object code, and the names of what it needs from elsewhere.

    The code defines `symbol`, for kernels that call this one, and `call.{symbol}`, for Python.
    """
    known = _signature(signature)
    with global_compiler_lock, target_extension.target_override(TARGET), _uncollected():
        dispatcher = jitted(function)
        dispatcher.compile(known if signature.result else known.args)
        [compiled] = dispatcher.overloads.values()
        library, described = compiled.library, compiled.fndesc
        bridge = add_bridge(dispatcher.targetctx, described, symbol, signature.arguments)
        module = library._final_module
        module.get_function(described.llvm_func_name).name = symbol
        module.link_in(llvm.parse_assembly(str(bridge)))
        linked = library.linked((symbol, f"call.{symbol}"))
        if any(each.name.startswith("numba.dynamic.globals") for each in linked.global_variables):
            raise TypeError(f"kernel {function.__qualname__} refers to objects of this process")
        made = []
        for processor in processors:
            own = linked.clone()
            code = codegen_of(processor).object_code(own, is_bulk)
            needs = [each.name for each in own.functions if each.is_declaration and not each.name.startswith("llvm.")]
            made.append((code, needs))
    return made


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Leave out the search for cyclic garbage, of which compiling makes little: it took a tenth of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _signature(signature: Signature) -> Any:
    """Return Numba's signature; without an annotation of the result, it has none."""
    arguments = [_type(each) for each in signature.arguments]
    if not signature.result:
        return types.unknown(*arguments)
    results = [_type(each) for each in signature.results()]
    if not results:
        return types.none(*arguments)
    return (types.BaseTuple.from_types(results) if signature.result.startswith("tuple[") else results[0])(*arguments)


def _type(annotation: str) -> Any:
    scalars = {"int": types.int64, "float": types.float64, "bool": types.boolean}
    return scalars[annotation] if annotation in scalars else types.Array(types.int64, ARRAYS[annotation], "C")
