"""What is in a wheel beside the modules."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.api.modules import ROOT


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_wheel_has_a_bill_of_what_it_requires(tmp_path: Path) -> None:
    """Nothing is compiled, so nothing of a compiler is inside."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    done = subprocess.run(
        command,
        env=os.environ | {"TIMELY_COMPILE": "0", "TIMELY_KERNELS": "0"},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        (name,) = [each for each in wheel.namelist() if ".dist-info/sboms/" in each]
        bill = json.loads(wheel.read(name))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["version"] == project["version"]
    required = {re.match(r"[\w.-]+", each).group() for each in project["dependencies"]}  # type: ignore[union-attr]
    assert {part["name"] for part in bill["components"]} == required
    assert set(bill["dependencies"][0]["dependsOn"]) == {part["bom-ref"] for part in bill["components"]}
