"""The changes that a commit makes: what statements add up to, given the rows that are committed.

`differential.session.transaction` computes them, and reads nothing. Here the workers look up the rows that it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from differential.session.call import Call
from differential.session.clock import Clocks
from differential.session.engine import Engine
from differential.session.feeds import Feeds
from differential.session.item import Item
from differential.session.site import Site
from differential.session.transaction import Net, RowStatement, plan, settled
from timely.errors import SessionError

Stated = tuple[Item, RowStatement]
Nets = dict[str, tuple[Item, Net]]
"""The changes of each table, by its name."""


class Begun(NamedTuple):
    """A commit that begins: the call that the workers make, its number, and the statements of the program in it."""

    call: Call[int]
    number: int
    statements: list[Stated]


def forget_kinds(items: Iterable[Item], kept: Iterable[Stated]) -> None:
    """Forget the kinds of columns that are neither committed nor those of the statements that are kept.

    A kind never changes, so a table is done with as soon as it has those that it had: a block inside of another that
    fails costs as much after many statements as after one.
    """
    lacking = {item for item in items if item.schema.forget()}
    for item, statement in kept:
        if not lacking:
            return
        if item in lacking:
            item.schema.fit(item.name, item.names or (), statement.columns)
            item.schema.fit_lists(item.name, item.names or (), statement.columns)
            if item.schema.is_as_before:
                lacking.remove(item)


def net_of(statements: Sequence[Stated], engine: Engine, clocks: Clocks, feeds: Feeds) -> Nets:
    """Return the changes of each table that statements make. Raises SessionError where a row is not there."""
    by_table: dict[Item, list[RowStatement]] = {}
    # The statements about a table that was dropped meanwhile are lost with it.
    reckoning = clocks.reckon([each for each in statements if each[0].error is None], feeds)
    for item, statement in reckoning.punctual:
        by_table.setdefault(item, []).append(statement)
    plans = {item: plan(each, item.keys) for item, each in by_table.items()}
    wanted = {item.name: (item, asked) for item, made in plans.items() if (asked := made.wanted) is not None}
    # The caller holds the lock of the catalog, so these are the rows of the last commit until the next one is made.
    found = engine.call(Site.look_up, wanted) if wanted else []
    made = {}
    for item, each in plans.items():
        shares = engine.call(Site.read, item) if each.is_cleared else []
        cleared = [Net(*share) for share in shares if len(share.counts)]
        there = [at[item.name] for at in found if item.name in at]
        made[item.name] = item, settled(each, there, item.name, cleared)
    left = {name: (item, changes) for name, (item, changes) in made.items() if changes is not None}
    return reckoning.finish(plans, left)


def changes_of(pending: Sequence[Stated], engine: Engine, clocks: Clocks, feeds: Feeds) -> Nets:
    """Return the changes of each table, by the program and by sources.

    A source whose changes cannot be made stops. Raises SessionError where those of the program cannot be made.
    """
    net = partial(net_of, engine=engine, clocks=clocks, feeds=feeds)
    # Until the commit begins, `net` changes nothing that the next call does not compute anew.
    with suppress(SessionError):
        return net([*pending, *feeds.statements()])
    net(pending)  # raises the same error, if the statements of the program are the reason
    # Each source is tried with the good ones before it, so of two that do not agree the later one stops.
    good = [feed for feed in feeds.all if feed.is_waiting]
    for feed in tuple(good):
        others = [each for each in feeds.all if each not in good[: good.index(feed) + 1]]
        try:
            net([*pending, *feeds.statements(*others)])
        except SessionError as error:
            feed.fail(error)
            good.remove(feed)
    return net([*pending, *feeds.statements()])
