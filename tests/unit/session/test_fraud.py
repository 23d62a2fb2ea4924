"""The how-to about fraud rings: its blocks print what it shows, and its views are those of a plain computation."""

from __future__ import annotations

import contextlib
import io
import re
from collections import Counter
from itertools import combinations
from typing import Any

import networkx
import pytest
from hypothesis import given, settings, strategies as st

from tests.api.modules import ROOT

BLOCK = re.compile(r"```(py|text)\n(.*?)```", re.DOTALL)
ACCOUNTS = st.sampled_from("abcdef")
PAYMENTS = st.dictionaries(st.integers(0, 9), st.tuples(ACCOUNTS, ACCOUNTS, st.integers(90, 130)), max_size=10)
DEVICES = st.lists(st.tuples(ACCOUNTS, st.integers(0, 2).map(str)), max_size=6)


def blocks() -> list[tuple[str, str]]:
    return BLOCK.findall((ROOT / "docs/howto/fraud.md").read_text())


def test_the_blocks_print_what_the_page_shows() -> None:
    names: dict[str, Any] = {}
    printed = io.StringIO()
    shown = ""
    with contextlib.redirect_stdout(printed):
        for kind, text in blocks():
            if kind == "py":
                exec(text, names)
            else:
                shown += text
                assert printed.getvalue() == shown
    assert shown.count("commit") == 4
    assert names["db"].is_closed


def alarms(payments: dict[int, Any], devices: list[tuple[str, str]]) -> Counter[Any]:
    graph = networkx.DiGraph((payer, payee) for payer, payee, amount in payments.values() if amount >= 100)
    ring = {
        account: min(part)
        for part in networkx.strongly_connected_components(graph)
        if len(part) > 1
        for account in part
    }
    moved: Counter[str] = Counter()
    for payer, payee, amount in payments.values():
        if payer in ring and ring[payer] == ring.get(payee):
            moved[ring[payer]] += amount
    pairs = {
        tuple(sorted((one, other)))
        for (one, device), (other, same) in combinations(devices, 2)
        if device == same and one != other
    }
    return Counter(
        (ring[one], one, other, moved[ring[one]])
        for one, other in pairs
        if one in ring and ring[one] == ring.get(other)
    )


@pytest.mark.lengthy
@settings(max_examples=12, deadline=None)
@given(st.lists(st.tuples(PAYMENTS, DEVICES), min_size=1, max_size=3))
def test_the_alarms_are_those_of_a_plain_computation(
    states: list[tuple[dict[int, Any], list[tuple[str, str]]]],
) -> None:
    names: dict[str, Any] = {}
    for kind, text in blocks()[:4]:
        assert kind == "py"
        exec(text, names)
    db = names["db"]
    with db:
        known: set[int] = set()
        before: list[tuple[str, str]] = []
        for payments, devices in states:
            for number in known - set(payments):
                names["payments"].delete(id=number)
            for number, (payer, payee, amount) in payments.items():
                names["payments"].upsert(id=number, payer=payer, payee=payee, amount=amount)
            names["devices"].delete(before) if before else None
            names["devices"].insert(devices) if devices else None
            known, before = set(payments), devices
            db.commit()
            assert Counter(names["alarms"].records()) == alarms(payments, devices)
