"""`timely viz` draws what a script builds, and runs no operator."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.api.modules import ROOT
from tests.integration.cluster.services import debian

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SCRIPT = """
import sys
from timely import execute

def program(worker):
    with worker.dataflow('the "first"') as scope:
        with scope.region("a < b") as region:
            stream = scope.to_stream([1]).enter(region).map(lambda x: print("RAN"), name="back\\\\slash")
        stream.leave().exchange(name="spread").inspect(print).probe()
    with worker.dataflow("second") as scope:
        scope.to_stream([2]).probe()
    print("built", sys.argv[1:], file=sys.stderr)
    while worker.step():
        pass
    print("STEPPED")

execute(program)
print("WENT ON")
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def viz(*arguments: str | Path, path: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "timely", "viz", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | ({} if path is None else {"PATH": path}),
        cwd=ROOT,
        check=False,
    )


def test_a_script_whose_name_is_not_utf_8_is_drawn_into_a_file(tmp_path: Path) -> None:
    script, picture = tmp_path / "caf\udce9.py", tmp_path / "picture.dot"
    script.write_text(SCRIPT)
    done = viz("-o", picture, script)
    assert (done.returncode, done.stderr) == (0, "built []\n")
    assert b"caf\xe9.py:11" in picture.read_bytes()


def only(tmp_path: Path, *programs: str) -> str:
    """Return a search path with these programs alone; skip the test where one cannot be had."""
    directory = tmp_path / "programs"
    directory.mkdir()
    for program in programs:
        debian({"dot": "graphviz", "node": "nodejs"}[program], program)
        found = shutil.which(program)
        assert found is not None
        (directory / program).symlink_to(found)
    return str(directory)


def test_the_script_ends_before_any_operator_runs(script: Path) -> None:
    drawn = viz(script, "--size", "10")
    assert drawn.returncode == 0, drawn.stderr
    assert "built ['--size', '10']" in drawn.stderr
    for word in ("RAN", "STEPPED", "WENT ON"):
        assert word not in drawn.stdout + drawn.stderr
    assert drawn.stdout.startswith("digraph")
    assert drawn.stdout.count("subgraph") == 3


def test_graphviz_draws_every_dataflow(script: Path, tmp_path: Path) -> None:
    path = only(tmp_path, "dot")
    assert viz("-o", tmp_path / "graph.svg", script, path=path).returncode == 0
    texts = texts_of(tmp_path / "graph.svg")
    assert {'the "first"', "a < b", "back\\slash", "spread", "second"} <= texts
    for form, begins in (("png", b"\x89PNG"), ("pdf", b"%PDF")):
        assert viz("-o", tmp_path / f"graph.{form}", script, path=path).returncode == 0
        assert (tmp_path / f"graph.{form}").read_bytes().startswith(begins)


def test_without_graphviz_elk_draws_the_largest(script: Path, tmp_path: Path) -> None:
    drawn = viz("-o", tmp_path / "graph.svg", script, path=only(tmp_path, "node"))
    assert drawn.returncode == 0, drawn.stderr
    assert (
        "shows only the largest dataflow, 0 ('the \"first\"'), and leaves out 1 other: install graphviz" in drawn.stderr
    )
    texts = texts_of(tmp_path / "graph.svg")
    assert {'the "first"', "back\\slash", "spread", "script.py:8"} <= texts
    assert any("a < b" in text for text in texts)
    assert "second" not in texts


def test_without_either_the_text_remains(script: Path, tmp_path: Path) -> None:
    path = only(tmp_path)
    refused = viz("-o", tmp_path / "graph.svg", script, path=path)
    assert refused.returncode == 2
    assert "install graphviz" in refused.stderr
    assert viz("-o", tmp_path / "graph.dot", script, path=path).returncode == 0
    assert viz("-o", tmp_path / "graph.json", script, path=path).returncode == 0
    shapes = json.loads((tmp_path / "graph.json").read_text())
    assert [shape["name"] for shape in shapes] == ['the "first"', "second"]


def test_a_loop_of_collections_is_drawn_from_an_example(tmp_path: Path) -> None:
    assert viz("-o", tmp_path / "bfs.dot", "examples/bfs.py").returncode == 0
    text = (tmp_path / "bfs.dot").read_text()
    assert text.count("constraint=false") == 1
    assert "join_map" in text


def test_what_cannot_be_drawn_is_refused(script: Path, tmp_path: Path) -> None:
    assert "nothing to run" in viz().stderr
    assert "its name ends with" in viz("-o", "graph.gif", script).stderr
    empty = tmp_path / "empty.py"
    empty.write_text("print('nothing')")
    assert "builds no dataflow" in viz(empty).stderr
    failing = tmp_path / "failing.py"
    failing.write_text("raise ValueError('no')")
    failed = viz(failing)
    assert failed.returncode == 1
    assert "ValueError: no" in failed.stderr
    assert "cannot read" in viz("-o", tmp_path / "graph.dot", "nowhere.py").stderr


@pytest.mark.parametrize("end", ["execute(program)", "sys.exit(execute(program))", "execute_directly(program)"])
def test_a_program_without_a_dataflow_is_refused(end: str, tmp_path: Path) -> None:
    script = tmp_path / "ok.py"
    head = "import sys\nfrom timely import execute, execute_directly\nprogram = lambda worker: None\n"
    script.write_text(f"{head}{end}\n")
    refused = viz("-o", tmp_path / "graph.dot", script)
    assert refused.returncode == 2
    assert f"{script} builds no dataflow before it steps a worker" in refused.stderr
    assert not (tmp_path / "graph.dot").exists()
    script.write_text("import sys\nsys.exit(3)\n")
    assert viz(script).returncode == 3


def test_an_output_after_the_script_is_noticed(script: Path) -> None:
    drawn = viz(script, "-o", "graph.svg")
    assert drawn.returncode == 0
    assert drawn.stdout.startswith("digraph")
    note = f"timely: -o graph.svg is passed to the script; to draw into this file: timely viz -o graph.svg {script}"
    assert note in drawn.stderr.splitlines()


def texts_of(path: Path) -> set[str]:
    """Return the texts in a picture."""
    root = ElementTree.parse(path).getroot()
    return {"".join(each.itertext()).strip() for each in root.iter() if each.tag.endswith("text")}


def test_the_dataflows_of_a_session_are_drawn_after_its_script_has_run(tmp_path: Path) -> None:
    script = tmp_path / "words.py"
    script.write_text(
        "from differential import Session\n"
        "with Session(workers=2) as db:\n"
        "    words = db.table('words', {'word': ['to', 'be', 'to']})\n"
        "    db.view('counts', lambda t: t.words.group_by('word').count())\n"
        "    db.commit()\n"
        "    print(len(words), 'rows')\n"
    )
    command = [sys.executable, "-m", "timely", "viz", "-o", str(tmp_path / "words.json"), str(script)]
    done = subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" rows\n")
    drawn = json.loads((tmp_path / "words.json").read_text())
    assert [shape["name"] for shape in drawn] == ["session", "table words", "view counts"]
    assert "words" in [node["name"] for node in drawn[1]["nodes"]]


def test_threads_are_drawn_once_and_what_the_script_prints_is_no_part_of_the_drawing(tmp_path: Path) -> None:
    script = tmp_path / "threads.py"
    script.write_text(
        "from timely import Config, execute\nprint('loading')\ndef program(worker):\n"
        "    with worker.dataflow('words') as scope:\n        scope.to_stream([1]).exchange().probe()\n"
        "execute(program, Config(workers=2))\n"
    )
    drawn = viz(script)
    assert drawn.returncode == 0, drawn.stderr
    assert drawn.stdout.startswith("digraph")
    assert drawn.stdout.count("subgraph cluster_0_0 ") == 1
    assert (drawn.stdout.count("loading"), drawn.stderr.count("loading")) == (0, 1)


def test_a_script_that_ends_with_a_status_of_its_own_is_drawn(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("\nexecute(program)", "\ntry: execute(program)\nexcept SystemExit: sys.exit(0)"))
    drawn = viz(script)
    assert drawn.returncode == 0, drawn.stderr
    assert drawn.stdout.startswith("digraph"), drawn.stderr
    job = viz("-m", "differential.jobs", "components", "random:10,20")
    assert "components" in job.stdout, job.stderr
