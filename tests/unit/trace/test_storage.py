"""Columns in files: which columns are, that no file is left behind, and that traces may exceed memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from differential.trace.batch import Batch
from differential.trace.description import Description
from differential.trace.handle import TraceHandle
from differential.trace.spine import Spine
from differential.trace.storage import Storage, is_mapped
from tests.invariants import check
from timely import Config
from timely.errors import SpillError
from timely.progress.antichain import Antichain


def _batch(epoch: int, rows: int) -> Batch:
    nothing = np.empty(0, np.int64)
    keys = np.arange(rows) * 7 + epoch
    bounds = Antichain([(epoch,)]), Antichain([(epoch + 1,)])
    return Batch.build(keys, keys + 1, nothing, nothing, np.array([[epoch]]), Description(*bounds, Antichain([(0,)])))


def test_large_batches_and_the_results_of_their_merges_are_in_unnamed_files(tmp_path: Path) -> None:
    spine = Spine(1, Storage(10_000, str(tmp_path)))
    reader = TraceHandle(spine)
    for epoch in range(6):
        kept = spine.insert(_batch(epoch, 1000))
        assert is_mapped(kept.keys)
        assert is_mapped(kept.vals)
        reader.allow_compaction(Antichain([(epoch + 1,)]))
    while spine.exert(1000):
        pass
    check(spine)
    batches = reader.batches()
    assert len(batches) < 6
    assert all(is_mapped(batch.keys) for batch in batches)
    assert sum(map(len, batches)) == 6000
    assert os.listdir(tmp_path) == []


def test_small_batches_stay_in_memory() -> None:
    spine = Spine(1, Storage(10_000))
    reader = TraceHandle(spine)
    batch = _batch(0, 100)
    assert spine.insert(batch) is batch
    assert not is_mapped(reader.batches()[0].keys)


def test_columns_share_a_file_if_together_they_exceed_the_bound(tmp_path: Path) -> None:
    storage = Storage(8 * 10, str(tmp_path))
    for lengths in ([10], [3, 0, 7], [11], [2, 5, 4], [4, 0, 7]):
        columns = storage.empty(lengths)
        for place, column in enumerate(columns):
            column[:] = place
        assert [column.tolist() for column in columns] == [[place] * length for place, length in enumerate(lengths)]
        assert {is_mapped(column) for column in columns if len(column)} == {sum(lengths) > 10}


def test_columns_that_are_in_a_file_already_are_not_copied_into_another(tmp_path: Path) -> None:
    storage = Storage(10_000, str(tmp_path))
    kept = storage.keep(_batch(0, 1000))
    assert is_mapped(kept.keys)
    assert storage.keep(kept) is kept


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the system does not reserve room for files")
def test_disk_space_is_reserved_for_a_whole_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reserved: list[tuple[int, int]] = []
    reserve = os.posix_fallocate

    def noting(file: int, start: int, size: int) -> None:
        reserved.append((start, size))
        reserve(file, start, size)

    monkeypatch.setattr(os, "posix_fallocate", noting)
    Storage(0, str(tmp_path)).empty([3, 4])
    assert reserved == [(0, 56)]


def test_files_are_made_even_if_disk_space_cannot_be_reserved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delattr(os, "posix_fallocate", raising=False)
    (column,) = Storage(0, str(tmp_path)).empty([3])
    assert is_mapped(column)
    assert column.tolist() == [0, 0, 0]


def test_a_file_that_cannot_be_made_is_an_error_that_names_the_directory(tmp_path: Path) -> None:
    missing = str(tmp_path / "gone")
    with pytest.raises(SpillError, match=r"80 bytes .* in .*gone: .*TIMELY_SPILL_DIR"):
        Storage(0, missing).empty([10])


def test_a_disk_that_is_full_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpillError, match="make room there"):
        Storage(0, str(tmp_path)).empty([1 << 55])


def test_a_process_without_descriptors_is_an_error_with_its_own_remedy(tmp_path: Path) -> None:
    storage, limits = Storage(0, str(tmp_path)), resource.getrlimit(resource.RLIMIT_NOFILE)
    kept = [storage.empty([1])]
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 5, limits[1]))
    try:
        with pytest.raises(
            SpillError, match=r"Too many open files; each batch .* \(ulimit -n, .*--spill-above\)$"
        ) as error:
            kept.extend(storage.empty([1]) for _ in range(20))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert "make room" not in str(error.value)


def test_a_process_that_puts_batches_into_files_may_open_as_many_as_the_system_permits() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    try:
        Storage.of(Config())
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (min(256, hard), hard)
        Storage.of(Config(spill_above=1000))
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


_BOUNDED = """
import resource, sys
import numpy as np
from differential import new_input
from timely import Antichain, Config, execute

def program(worker):
    with worker.dataflow() as scope:
        pairs, collection = new_input(scope)
        trace = collection.arrange_by_key()
        reader = trace.reader()
        probe = trace.stream.probe()
    column = np.arange(1_000_000)
    for epoch in range(25):
        if epoch == 1:
            with open("/proc/self/status") as status:
                used = next(int(line.split()[1]) for line in status if line.startswith("VmData"))
            resource.setrlimit(resource.RLIMIT_DATA, ((used << 10) + (250 << 20),) * 2)
        pairs.insert(column * 25 + epoch, column)
        pairs.advance_to(epoch + 1)
        worker.step_while(lambda: probe.less_than(epoch + 1))
        reader.allow_compaction(Antichain([(epoch + 1,)]))
    batches = reader.batches()
    print(sum(map(len, batches)), sum(batch.nbytes for batch in batches) >> 20)

execute(program, Config(spill_above=int(sys.argv[1]) if sys.argv[1:] else None))
"""


def _run_bounded(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _BOUNDED, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


_AS_ON_WINDOWS = """
import sys

sys.modules["resource"] = sys.modules["fcntl"] = None
from differential.session import Session
from differential.trace.storage import Storage
from timely import Config

assert Storage.of(Config(spill_above=1)).above == 1
with Session() as db:
    db.table("orders", {"id": [1], "total": [5]})
    db.commit()
    print(db.ask(lambda t: t.orders).records())
"""


def test_one_process_needs_no_modules_that_windows_lacks() -> None:
    command = [sys.executable, "-c", _AS_ON_WINDOWS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.stdout == "[(1, 5)]\n", done.stderr


@pytest.mark.slow
@pytest.mark.timeout(200)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the bound is that of Linux")
def test_arrangements_may_be_larger_than_memory() -> None:
    spilled = _run_bounded(str(1 << 20))
    assert spilled.returncode == 0, spilled.stderr
    rows, megabytes = map(int, spilled.stdout.split())
    assert rows == 25_000_000
    assert megabytes > 350
    in_memory = _run_bounded()
    assert in_memory.returncode != 0
    assert "MemoryError" in in_memory.stderr
