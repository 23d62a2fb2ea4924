"""Put the programs of the jobs, compiled kernels and compiled modules into a wheel while it is built.

The programs are those of `examples/`, with their data, under `differential/jobs/examples`, where
`python -m differential.jobs` finds them. An editable install has no copy, because it finds those of the checkout.

Compiled *modules* are those that `pyproject.toml` names: mypyc compiles ordinary Python to C, so with or without it
the package does the same. Compiled *kernels* are the loops over rows, for the processor of this machine or, with
`TIMELY_KERNELS=levels`, for each level of processor for which wheels are published. Both are compiled at the same time,
on all cores. Where modules cannot be compiled, for want of a C compiler, say, the wheel does without, and a warning
that pip shows with `-v` states why; with `TIMELY_COMPILE=1` that ends the build, and with `TIMELY_COMPILE=0` they are
left out. Kernels that cannot be compiled end the build, because what is installed does not require Numba;
`TIMELY_KERNELS=0` leaves them out, for use with the extra `compile`.

Editable installs have neither. With `TIMELY_COMPILE=1` the modules are compiled in place: from then on changes of those
sources take effect when it is done again. Kernels are compiled at their first use, by the Numba of the extra `compile`.

The wheel also has a software bill of materials, by CycloneDX, in `.dist-info/sboms` (PEP 770): the packages that it
requires, and those whose code is in what was compiled.

`python -P -c "import timely.order; print(timely.order.__file__)"` shows whether the modules that are installed are
compiled: it prints the name of an extension module, or of `order.py`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PROGRAMS, PROGRAMS_PLACE = "examples", "differential/jobs/examples"
"""Where the programs of the jobs are, in a checkout and in a wheel."""


COMPILERS = {".so": ("mypy",), ".pyd": ("mypy",), ".kernels": ("numba", "llvmlite")}
"""Packages that add code of their own to the files that they compile: the runtime of mypyc, and what kernels call."""


GROUP = "timely"
"""The name of what holds the code of all compiled modules."""

OWN_SYMBOLS = "-fvisibility=hidden"
"""An option of GCC and Clang by which the functions of an extension call each other directly.

By default such a call goes through a table of jumps, in case another library replaces the function, and a change takes
about 9 % longer.
"""

NO_WARNINGS = "-Wno-all"
"""An option of GCC and Clang. Looking for what Python's own options warn about takes GCC one second of 28."""

LATER = 5
"""How much less urgent the C compiler is than the kernels, which half as many processes as there are cores compile.

Then both end at about the same time, and fewer processes compete for the cores (docs/design/0019-compiled-to-c.md).
"""

FILES = 4
"""How many files of C are compiled for each core."""

LEFT_OUT = (
    "tree-pta",
    "tree-dominator-opts",
    "tree-ccp",
    "tree-dse",
    "dse",
    "tree-sra",
    "tree-ch",
    "tree-loop-optimize",
    "move-loop-invariants",
    "if-conversion",
    "if-conversion2",
)
"""Passes of GCC at -O1 that take a fifth of its time, and make changes hardly faster, if at all.

docs/design/0019-compiled-to-c.md has the figures.
"""

NOT_FOLLOWED = "differential"
"""The package whose `__init__.py` mypy does not read: it imports a hundred modules that no compiled module needs."""

RUNS_ONCE, UNOPTIMISED = r"\bCPyDef_\w+_____top_level__(?=\(void\);)", '__attribute__((optimize("O0")))'
"""The functions that import a module, an eighth of all C code, and an attribute for them, which Clang ignores."""


class WheelHook(BuildHookInterface[Any]):
    """Adds the programs of the jobs, compiled kernels, and extension modules beside their sources."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile into a temporary directory, and add the files to the wheel or put them beside their sources."""
        modules, kernels = os.environ.get("TIMELY_COMPILE", ""), os.environ.get("TIMELY_KERNELS", "")
        is_editable = version == "editable"
        if not is_editable:
            build_data["force_include"][str(Path(self.root) / PROGRAMS)] = PROGRAMS_PLACE
        self._built = Path(tempfile.mkdtemp(prefix="timely-compile-"))
        with ThreadPoolExecutor() as pool:
            steps = []
            processes = os.cpu_count() or 1
            if modules != "0" and (not is_editable or modules == "1"):
                processes = max(1, processes // 2)
                sources = _sources(Path(self.root), self.config["modules"])
                steps.append((pool.submit(_modules, Path(self.root), sources, self._built), modules == "1"))
            if kernels != "0" and not is_editable:
                made = pool.submit(_kernels, Path(self.root), kernels or "host", processes, self._built)
                steps.append((made, True))
            for step, is_required in steps:
                self._add(step, is_required, is_editable, build_data)
        if not is_editable:
            bill = self._built / "timely-dataflow.cdx.json"
            core = self.metadata.core
            kinds = {Path(place).suffix for place in build_data["force_include"].values()}
            inside = sorted({each for kind in kinds for each in COMPILERS.get(kind, ()) if _version_of(each)})
            bill.write_text(bill_of_materials(core.name, self.metadata.version, core.dependencies, inside))
            build_data["sbom_files"].append(str(bill))

    def _add(self, step: Future[Path], is_required: bool, is_editable: bool, build_data: dict[str, Any]) -> None:
        """Add the files of the directory that a step returns; unless they are required, do without if it fails."""
        try:
            directory = step.result()
        except (Exception, SystemExit) as error:
            if is_required:
                raise
            self.app.display_warning(f"not compiled, which makes changes slower: {error}")
            return
        for file in sorted(path for path in directory.rglob("*") if path.is_file()):
            place = file.relative_to(directory)
            if is_editable:
                shutil.copy2(file, Path(self.root) / place)
            else:
                build_data["force_include"][str(file)] = str(place)
                build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary directory."""
        if hasattr(self, "_built"):
            shutil.rmtree(self._built, ignore_errors=True)


def bill_of_materials(name: str, version: str, requirements: list[str], inside: list[str]) -> str:
    """Return a bill, by CycloneDX, of a package that requires some packages and has code of others inside.

    It depends on nothing else, so the same build has the same bill.
    """
    own = {"type": "library", "name": name, "version": version, "bom-ref": name, "purl": f"pkg:pypi/{name}@{version}"}
    parts: dict[str, dict[str, Any]] = {}
    for requirement in requirements:
        found = re.match(r"[A-Za-z0-9._-]+", requirement)
        required = found.group() if found else requirement
        wanted = {"name": "requirement", "value": requirement}
        part = {"type": "library", "name": required, "scope": "required", "purl": f"pkg:pypi/{required}"}
        parts[required] = {**part, "bom-ref": required, "properties": [wanted]}
    for compiler in inside:
        release = _version_of(compiler)
        part = {"type": "library", "name": compiler, "version": release, "purl": f"pkg:pypi/{compiler}@{release}"}
        parts[f"{compiler}@{release}"] = {
            **part,
            "bom-ref": f"{compiler}@{release}",
            "description": "part of its code is in the compiled modules or kernels",
        }
    bill = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**own, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": list(parts.values()),
        "dependencies": [{"ref": name, "dependsOn": list(parts)}, *({"ref": each} for each in parts)],
    }
    return json.dumps(bill, indent=2) + "\n"


def _version_of(package: str) -> str | None:
    """Return which version of a package takes part in this build."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _sources(root: Path, patterns: list[str]) -> list[str]:
    """Return the files that match the patterns, at least one each."""
    found = {pattern: [str(path.relative_to(root)) for path in root.glob(pattern)] for pattern in patterns}
    if absent := [pattern for pattern, files in found.items() if not files]:
        raise FileNotFoundError(f"pyproject.toml names modules to compile that are not there: {', '.join(absent)}")
    return sorted(chain.from_iterable(found.values()))


def _modules(root: Path, sources: list[str], into: Path) -> Path:
    """Return a directory with the extension modules made of the sources, by a process that runs this file."""
    _run([sys.executable, str(root / "hatch_build.py"), str(into), *sources], root)
    return into / "modules"


def _compile_modules(sources: list[str], into: Path) -> None:
    """Put the extension modules made of the sources into a directory. The current directory is the checkout."""
    from mypyc.build import mypycify
    from setuptools import Distribution

    options = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent", f"--cache-dir={os.devnull}"]
    paths, directory = [*options, *sources], into / "c"
    group, *others = mypycify(
        paths,
        group_name=GROUP,
        opt_level="1",  # what -O2 does beyond this takes 18 s, and made no change faster
        debug_level="0",
        multi_file=True,  # a file of C for each module, which compile at the same time
        target_dir=str(directory),
        skip_cgen_input=_generated(paths, directory),
    )
    group.sources = _joined(group.sources, directory)
    shared = _shared(others, directory)
    extensions = [group, *(extension for extension, _ in shared)]
    for extension in extensions:  # another compiler's warnings are no reason to do without
        extension.extra_compile_args = [each for each in extension.extra_compile_args if each != "-Werror"]
        extension.extra_compile_args += [OWN_SYMBOLS, NO_WARNINGS]
    command = Distribution({"ext_modules": extensions}).get_command_obj("build_ext")
    command.build_temp, command.build_lib = str(into / "temp"), str(into / "modules")
    command.ensure_finalized()
    build = command.build_extensions

    def build_in_parallel() -> None:
        if hasattr(os, "nice"):
            os.nice(LATER)
        less = _accepted(command.compiler, [f"-fno-{each}" for each in LEFT_OUT], directory)
        for extension in extensions:
            extension.extra_compile_args += less
        _compile_in_parallel(command.compiler, directory)
        build()

    command.build_extensions = build_in_parallel
    command.run()
    for extension, names in shared:
        made = Path(command.get_ext_fullpath(extension.name))
        for place in [Path(command.get_ext_fullpath(name)) for name in names if name != extension.name]:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(made, place)


def _generated(paths: list[str], directory: Path) -> Any:
    """Return the C code of the sources as `mypycify` takes it, or None if `mypycify` has to generate it.

    `mypycify` checks the types of all functions of the two packages, because the compiled modules import most others.
    Here mypy checks only functions that are compiled, and treats the other modules as libraries. The C code is the
    same. These functions of mypy are not public, so a version in which they differ generates the code on its own.
    """
    try:
        from mypy.errors import CompileError
        from mypy.fscache import FileSystemCache
        from mypyc.build import construct_groups, get_mypy_config
        from mypyc.codegen import emitmodule
        from mypyc.errors import Errors
        from mypyc.options import CompilerOptions
    except ImportError:
        return None
    try:
        kind = CompilerOptions(multi_file=True, target_dir=str(directory), group_name=GROUP)
        cache = FileSystemCache()
        compiled, found, options = get_mypy_config(paths, None, kind, cache)
        for source in compiled:
            package = source.module.partition(".")[0]
            options.per_module_options.setdefault(f"{package}.*", {})["preserve_asts"] = False
            options.per_module_options[source.module]["preserve_asts"] = True
        options.per_module_options.setdefault(NOT_FOLLOWED, {})["follow_imports"] = "skip"
        groups = construct_groups(compiled, False, True, GROUP)
        checked = emitmodule.parse_and_typecheck(found, options, kind, groups, cache)
        errors = Errors(options)
        modules, code, _ = emitmodule.compile_modules_to_c(checked, kind, errors, groups)
        needed = [
            (each.path, each.include_dirs, each.internal) for each in emitmodule.collect_source_dependencies(modules)
        ]
    except (AttributeError, CompileError, KeyError, TypeError):
        return None
    return None if checked.errors or errors.num_errors else (code, sorted(needed))


def _joined(sources: list[str], directory: Path) -> list[str]:
    """Return fewer files that have the code of the sources of a group: a few for each core, of about the same size.

    To read Python's headers for each of the twenty small files of mypyc's own functions takes longer than to compile
    them, and each file of a module costs something, too. mypyc can write one file, so no names of modules clash.
    """
    own = [each for each in sources if not Path(each).name.startswith("__native")]
    modules = sorted(set(sources) - set(own), key=os.path.getsize, reverse=True)
    parts: list[list[str]] = [[] for _ in range(min(FILES * (os.cpu_count() or 1), len(modules)))]
    for module in modules:
        min(parts, key=lambda part: sum(map(os.path.getsize, part))).append(module)
    files = {f"__native{number}.c": part for number, part in enumerate(parts)} | {"runtime.c": own}
    for name, part in files.items():
        (directory / name).write_text("".join(f'#include "{Path(each).resolve()}"\n' for each in part))
    return [str(directory / name) for name in files]


def _shared(extensions: list[Any], directory: Path) -> list[tuple[Any, list[str]]]:
    """Return extensions that each have the code of many, and the names of these.

    mypyc makes one for each module, which only has the function that imports the module. To compile and link it takes
    as long as to compile and link many. The function has the last name of the module, so modules whose last names are
    the same are in different extensions.
    """
    parts: list[dict[str, Any]] = []
    for extension in extensions:
        last = extension.name.removesuffix(".__init__").rpartition(".")[2]
        part = next((each for each in parts if last not in each), None)
        if part is None:
            parts.append(part := {})
        part[last] = extension
    shared = []
    for number, part in enumerate(parts):
        source = directory / f"modules{number}.c"
        sources = [each for one in part.values() for each in one.sources]
        other = "PyInit___init__"  # which each source also defines, and nothing calls
        lines = [
            f'#define {other} {other}{place}\n#include "{Path(each).resolve()}"\n#undef {other}\n'
            for place, each in enumerate(sources)
        ]
        source.write_text("".join(lines))
        first = next(iter(part.values()))
        first.sources = [str(source)]
        shared.append((first, [one.name for one in part.values()]))
    return shared


def _accepted(compiler: Any, options: list[str], directory: Path) -> list[str]:
    """Return the options if a compiler takes them, which is tried with an empty file, or none. Clang knows few."""
    from setuptools.errors import CompileError

    if compiler.compiler_type != "unix":
        return []
    empty = directory / "empty.c"
    empty.write_text("")
    try:
        compiler.compile([str(empty)], output_dir=str(directory), extra_postargs=options)
    except CompileError:
        return []
    return options


def _compile_in_parallel(compiler: Any, directory: Path) -> None:
    """Have a compiler of setuptools compile the sources of an extension module at the same time.

    Nearly all sources include the same headers, and reading these takes a sixth of the time. GCC and Clang read them
    once, from a precompiled header. It also declares what GCC leaves unoptimised.
    """
    from setuptools.errors import CompileError

    compile_one = compiler.compile
    headers = sorted(directory.glob(f"__native*_{GROUP}.h"))
    declared = "".join(each.read_text() for each in headers)
    lines = [f'#include "{each.name}"' for each in headers]
    lines += [f"char {name}(void) {UNOPTIMISED};" for name in sorted(set(re.findall(RUNS_ONCE, declared)))]
    common = directory / "headers.h"
    common.write_text("\n".join(lines) + "\n")

    def compile_all(sources: list[str], **options: Any) -> list[str]:
        include = []
        if compiler.compiler_type == "unix" and len(sources) > 1:
            with contextlib.suppress(CompileError):
                compiler.src_extensions = [*compiler.src_extensions, common.suffix]
                shutil.move(compile_one([str(common)], **options)[0], f"{common}.gch")
                include = ["-include", str(common)]

        def compiled(source: str) -> list[str]:
            extra = include if Path(source).name.startswith("__native") else []
            return compile_one([source], **options | {"extra_postargs": [*(options["extra_postargs"] or ()), *extra]})

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(chain.from_iterable(pool.map(compiled, sources)))

    compiler.compile = compile_all


def _kernels(root: Path, target: str, processes: int, into: Path) -> Path:
    """Return a directory with the compiled kernels for the processor of this machine (host), or for all (levels)."""
    place = into / "kernels" / "differential" / "kernels"
    place.mkdir(parents=True)
    options = ["--into", str(place), "--for", target, "--processes", str(processes)]
    command = [sys.executable, "-m", "differential.kernels", *options]
    _run(command, root)
    return into / "kernels"


def _run(command: list[str], root: Path) -> None:
    """Run a step of the build, which imports the packages of the checkout; raise an error with its output if it fails.

    The output is kept, because builders may read what the build itself writes to standard output.
    """
    # pip shows a build its requirements through this variable, so what is in it must stay.
    path = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    _compile_modules(sys.argv[2:], Path(sys.argv[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # mypy leaves millions of objects behind; to free each of them takes five seconds
