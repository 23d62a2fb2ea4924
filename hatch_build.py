"""Put the programs of the jobs into a wheel, and compile what `pyproject.toml` names to C while it is built.

The programs are those of `examples/`, with their data, under `differential/jobs/examples`, where
`python -m differential.jobs` finds them. An editable install has no copy, for it finds those of the checkout.

What is compiled is ordinary Python, which mypyc checks the types of and compiles; with or without, the package does the
same. Where that fails, for want of a C compiler, say, the wheel has Python alone, and a warning says why, which pip
shows with `-v`. The environment decides otherwise: `TIMELY_COMPILE=0` leaves it out, and with `TIMELY_COMPILE=1` a
failure ends the build. Editable installs are compiled with `TIMELY_COMPILE=1` only, in place: from then on changes of
those sources take effect when it is done again.

Whether what is installed is compiled, shows `python -P -c "import timely.order; print(timely.order.__file__)"`: an
extension module, or `order.py`.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


PROGRAMS, PROGRAMS_PLACE = "examples", "differential/jobs/examples"
"""Where the programs of the jobs are, in a checkout and in a wheel."""


class WheelHook(BuildHookInterface[Any]):
    """Adds the programs of the jobs; and extension modules, one beside each source, and one for what they share."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile into a temporary directory, and add the files to the wheel or put them beside their sources."""
        wish = os.environ.get("TIMELY_COMPILE", "")
        is_editable = version == "editable"
        if not is_editable:
            build_data["force_include"][str(Path(self.root) / PROGRAMS)] = PROGRAMS_PLACE
        if wish == "0" or (is_editable and wish != "1"):
            return
        sources = _sources(Path(self.root), self.config["modules"])
        self._built = Path(tempfile.mkdtemp(prefix="timely-compile-"))
        try:
            compiled = _compile(Path(self.root), sources, self._built)
        except (Exception, SystemExit) as error:
            if wish == "1":
                raise
            self.app.display_warning(f"not compiled, which makes changes slower: {error}")
            return
        for file in compiled:
            place = file.relative_to(self._built / "lib")
            if is_editable:
                shutil.copy2(file, Path(self.root) / place)
            else:
                build_data["force_include"][str(file)] = str(place)
        if not is_editable:
            build_data["pure_python"] = False
            build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the temporary directory."""
        if hasattr(self, "_built"):
            shutil.rmtree(self._built, ignore_errors=True)


def _sources(root: Path, patterns: list[str]) -> list[str]:
    """Return the files that match the patterns, at least one each."""
    found = {pattern: [str(path.relative_to(root)) for path in root.glob(pattern)] for pattern in patterns}
    if absent := [pattern for pattern, files in found.items() if not files]:
        raise FileNotFoundError(f"pyproject.toml names modules to compile that are not there: {', '.join(absent)}")
    return sorted(chain.from_iterable(found.values()))


def _compile(root: Path, sources: list[str], into: Path) -> list[Path]:
    """Return the extension modules made of the sources, under `into / "lib"`."""
    from mypyc.build import mypycify
    from setuptools import Distribution

    options = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent", f"--cache-dir={into / 'cache'}"]
    with chdir(root), _output_to_errors():
        extensions = mypycify(
            [*options, *sources],
            group_name="timely",
            opt_level="2",
            debug_level="0",
            target_dir=str(into / "c"),
        )
        for extension in extensions:  # another compiler's warnings are no reason to do without
            extension.extra_compile_args = [each for each in extension.extra_compile_args if each != "-Werror"]
        command = Distribution({"ext_modules": extensions}).get_command_obj("build_ext")
        command.build_temp, command.build_lib = str(into / "temp"), str(into / "lib")
        command.ensure_finalized()
        command.run()
    return sorted((into / "lib").rglob(f"*{SUFFIX}"))


@contextmanager
def _output_to_errors() -> Iterator[None]:
    """Send what compilers print to standard error, for builders may read standard output."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
