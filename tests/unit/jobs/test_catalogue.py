"""All jobs are found by their names."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from differential.jobs import catalogue
from differential.jobs.__main__ import main

STREAMS = {"alltoall", "barrier", "imports", "kexposure", "logistic", "topics", "upgrade", "window", "wordcount"}
LONGEST = 100


def test_the_jobs_have_names_and_short_descriptions() -> None:
    known = catalogue.programs()
    assert STREAMS < set(known)
    for name in STREAMS:
        assert 20 < len(catalogue.about(known[name])) <= LONGEST


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("wordcuont", "did you mean wordcount?"),
        ("motifs", "did you mean triangles?"),
        ("cores", "did you mean kcore"),
        ("scc", "`python -m differential.jobs` lists all"),
    ],
)
def test_an_unknown_name_is_refused_with_those_it_resembles(
    name: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([name]) == 2
    assert f"no job is called {name!r}; {hint}" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["components", "wordcount"])
def test_the_help_names_every_compression(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [""])
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main([name, "--help"]) == 0
    assert "also compressed (.gz, .zst, .bz2)" in " ".join(capsys.readouterr().out.split())


def test_jobs_about_streams_run_without_the_libraries_of_the_extra(tmp_path: Path) -> None:
    for name in ("matplotlib", "networkx", "pyarrow", "rich", "scipy"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError(name={name!r})")
    script = f"""
import sys
from differential.jobs.__main__ import main
statuses = [main([*command.split(), "--quiet"]) for command in (
    "wordcount {catalogue.directory() / "README.md"}",
    "window --users 9 --rate 3 --window 2 --slides 2",
    "window --users 9 --rate 3 --window 2 --slides 2 --check",
    "wordcount {catalogue.directory() / "README.md"} --plot {tmp_path / "words.svg"}",
    "components random:10,10",
)]
print(statuses)
"""
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(catalogue.CHECKOUT.parent)])}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environ, capture_output=True, text=True, timeout=50, check=False
    )
    assert done.stdout == "[0, 0, 1, 1, 1]\n", done.stderr
    assert [line.partition(" needs ")[0] for line in done.stderr.splitlines()] == [
        "window: --check",
        "wordcount: --plot",
        "components: a job about a graph",
    ]
