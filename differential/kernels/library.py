"""The intermediate code of functions: linked, optimised by LLVM, and made object code.

A library is the code of one function, and refers to those of the functions that it calls. `codegen.py` makes them.
Importing this module imports Numba.
"""

from __future__ import annotations

import functools
from collections import Counter
from typing import Any

import llvmlite
import llvmlite.binding as llvm
from numba.core import codegen, config

from differential.kernels.processor import Processor
from differential.kernels.runtime import TEXT

INLINES = tuple(map(int, llvmlite.__version__.split(".")[:2])) >= (0, 48)
"""Whether functions can be marked for inlining. Before 0.48, llvmlite marked what they return, which LLVM refuses."""
_LEVEL, _BULK_LEVEL = 2, 3
"""LLVM's levels of optimisation: for most kernels, and for those that make passes over whole columns."""


class Library(codegen.JITCodeLibrary):  # type: ignore[misc]
    """The intermediate code of one function, and the libraries that it calls: nothing is linked or optimised yet."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._calls: Counter[str] = Counter()

    def add_linking_library(self, library: Any) -> None:
        self._linking_libraries.append(library)

    def add_ir_module(self, ir_module: Any) -> None:
        self._calls += ir_module.calls
        super().add_ir_module(ir_module)

    def finalize(self) -> None:
        self._finalized = True

    def linked(self, exported: tuple[str, ...]) -> Any:
        """Return a module with all functions that this one reaches; only those exported keep their names.

        A function that is called in one place is marked for inlining. LLVM would inline it anyway, but only after
        optimising it by itself.
        """
        module, calls = self._final_module, self._calls.copy()
        # A function is only linked if something linked before calls it, so callers come first.
        for library in reversed(self._callees_first({})):
            module.link_in(library._get_module_for_linking(), preserve=True)
            calls += library._calls
        module.link_in(llvm.parse_assembly(TEXT))
        for function in module.functions:
            if not function.is_declaration and function.name not in exported:
                function.linkage = "internal"
                is_called_once = INLINES and calls[function.name] == 1
                if is_called_once and b"noinline" not in b" ".join(function.attributes):
                    function.add_function_attribute("alwaysinline")
        return module

    def _callees_first(self, known: dict[int, Library]) -> list[Library]:
        """Return the libraries that this one reaches, each after those that it calls."""
        for library in self._linking_libraries:
            if isinstance(library, Library) and id(library) not in known:
                library._callees_first(known)
                known[id(library)] = library
        return list(known.values())


class Codegen(codegen.JITCPUCodegen):  # type: ignore[misc]
    """LLVM for one processor."""

    _library_class = Library

    def __init__(self, processor: Processor) -> None:
        self._processor = processor
        super().__init__(f"differential.kernels.{processor.name}")

    def _create_empty_module(self, name: str) -> Any:
        module = super()._create_empty_module(name)
        module.calls = Counter()  # how often it calls which functions
        return module

    def _get_host_cpu_name(self) -> str:
        return self._processor.name

    def _get_host_cpu_features(self) -> str:
        return self._processor.features

    def _pass_builder(self, **settings: Any) -> Any:
        """Return LLVM's passes for Numba's settings, which leave loops as they are unless they are to be vectorised.

        Level 3 takes longer, vectorised and unrolled loops make kernels larger, and only passes over whole columns
        become faster (docs/design/0023-kernels-without-numba.md).
        """
        is_bulk = settings.get("loop_vectorize", False)
        level = min(int(settings.get("opt", config.OPT)), _BULK_LEVEL if is_bulk else _LEVEL)
        options = llvm.create_pipeline_tuning_options(level)
        options.slp_vectorization = False
        options.loop_vectorization = options.loop_unrolling = options.loop_interleaving = is_bulk
        return llvm.create_pass_builder(self._tm, options)

    def _function_pass_manager(self, **settings: Any) -> Any:
        """Return the passes for a single function: the three that simplify most, and Numba's for reference counts.

        All passes of level 2 take twice as long, and gain nothing: functions are optimised again when they are linked
        into a kernel (docs/design/0023-kernels-without-numba.md).
        """
        manager = llvm.create_new_function_pass_manager()
        manager.add_sroa_pass()
        manager.add_instruction_combine_pass()
        manager.add_simplify_cfg_pass()
        if config.LLVM_REFPRUNE_PASS:
            manager.add_refprune_pass(codegen._parse_refprune_flags())
        return manager, self._pass_builder(**settings)

    def object_code(self, module: Any, is_bulk: bool) -> bytes:
        """Return the object code of a module, which is optimised in place."""
        manager, passes = self._module_pass_manager(loop_vectorize=is_bulk)
        manager.run(module, passes)
        module.verify()
        return self._tm.emit_object(module)  # type: ignore[no-any-return]


@functools.cache
def codegen_of(processor: Processor) -> Codegen:
    """Return LLVM for a processor."""
    return Codegen(processor)
