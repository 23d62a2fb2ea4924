"""The files of others in the page are those that are recorded, and the page loads nothing from elsewhere."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import timely.live

PAGE = Path(timely.live.__file__).with_name("page")
VENDOR = PAGE / "vendor"
ROW = re.compile(
    r"^\| ([\w.-]+) \| \[(\w+)\]\(\S+\) \| ([\d.]+) \| .*\]\(([\w.]+)\).* \| ([0-9a-f]{64}) \|$", re.MULTILINE
)


def test_each_file_of_others_is_recorded_with_version_licence_and_digest() -> None:
    rows = ROW.findall((VENDOR / "ASSETS.md").read_text())
    recorded = {name for name, *_ in rows} | {licence for *_, licence, _ in rows} | {"ASSETS.md"}
    assert recorded == {path.name for path in VENDOR.iterdir()}
    for name, _, _, licence, digest in rows:
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest
        assert len((VENDOR / licence).read_text()) > 500


def test_the_page_loads_nothing_from_other_hosts() -> None:
    for path in PAGE.glob("*.*"):
        foreign = re.findall(r"https?://[^\s\"')]+", path.read_text())
        assert set(foreign) <= {"http://www.w3.org/2000/svg"}, path


def test_the_wheel_has_the_files_of_the_page() -> None:
    from hatchling.builders.wheel import WheelBuilder

    root = Path(timely.live.__file__).parents[2]
    packed = {each.distribution_path for each in WheelBuilder(str(root)).recurse_included_files()}
    assert {str(path.relative_to(root)) for path in PAGE.rglob("*") if path.is_file()} <= packed
