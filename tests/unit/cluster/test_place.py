"""Addresses that lead each process to each other one, whatever they call each other."""

from __future__ import annotations

from hypothesis import given, strategies as st

from timely.cluster.place import addresses_of
from timely.cluster.slurm import first_node, place_of
from timely.config import split_tcp


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=8),
    st.data(),
)
def test_the_address_of_a_process_is_one_of_its_machine(machines: list[int], data: st.DataObject) -> None:
    """Process 0 is on machine 0. A process there may reach it by a loopback address, all others do not."""
    introductions = []
    for number, machine in enumerate(machines):
        is_local = machine == 0 and data.draw(st.booleans())
        here, head = ("127.0.0.1", "127.0.0.1") if is_local else (f"10.0.0.{machine + 1}", "10.0.0.1")
        introductions.append({"here": here, "head": head, "port": 20_000 + number})
    addresses = addresses_of(introductions, 30_000)
    reached = [split_tcp(address)[0] for address in addresses]
    if all(introduction["head"] == "127.0.0.1" for introduction in introductions):
        assert set(reached) == {"127.0.0.1"}
    else:
        assert reached == [f"10.0.0.{machine + 1}" for machine in [0, *machines]]
    assert [split_tcp(address)[1] for address in addresses] == [30_000, *range(20_000, 20_000 + len(machines))]


def test_an_address_of_the_sixth_protocol_is_in_brackets() -> None:
    introduction = {"here": "fd00::2", "head": "fd00::1", "port": 20_001}
    assert addresses_of([introduction], 20_000) == ("tcp://[fd00::1]:20000", "tcp://[fd00::2]:20001")


@given(
    st.from_regex(r"[a-z]+-?", fullmatch=True),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), min_size=1, max_size=4),
    st.integers(1, 4),
    st.lists(st.from_regex(r"[a-z]+[0-9]*", fullmatch=True), max_size=2),
)
def test_the_first_node_of_a_list_is_the_first_that_it_expands_to(
    prefix: str, spans: list[tuple[int, int]], width: int, others: list[str]
) -> None:
    expanded, ranges = [], []
    for first, further in spans:
        expanded += [f"{prefix}{number:0{width}}" for number in range(first, first + further + 1)]
        ranges.append(f"{first:0{width}}-{first + further:0{width}}" if further else f"{first:0{width}}")
    assert first_node(",".join([f"{prefix}[{','.join(ranges)}]", *others])) == expanded[0]
    assert first_node(",".join([*expanded, *others])) == expanded[0]


def test_attempts_of_a_job_and_steps_of_a_job_are_different_runs() -> None:
    environ = {
        "SLURM_PROCID": "0",
        "SLURM_STEP_NUM_TASKS": "2",
        "SLURM_JOB_ID": "7",
        "SLURM_STEP_ID": "0",
        "SLURM_STEP_NODELIST": "n",
    }
    changed = [{}, {"SLURM_STEP_ID": "1"}, {"SLURM_RESTART_COUNT": "1"}, {"SLURM_JOB_ID": "8"}]
    places = [place_of(environ | change) for change in changed]
    assert len({place.run for place in places}) == len({place.ports for place in places}) == len(places)
