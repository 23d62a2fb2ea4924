"""Each public name is shown by an example, which `test_docstrings` runs.

The rule: a name is used in an example, on lines that begin with `>>>` or `...`. A function is used in its own
docstring, and so is an operator that a class lists among its methods. Any other method is used in its own docstring or
its class's. A class has an example in its docstring or in that of a method.
Exceptions, enumerations, records, type aliases, constants and properties need none, nor does what only the packages'
own layers call of each other, which is listed below.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from doctest import DocTestParser
from enum import Enum
from types import ModuleType
from typing import Any

import pytest

import differential
import differential.arrangement.reading
import differential.capture
import differential.delta
import differential.durable
import differential.graphs
import differential.lowlevel
import differential.session
import differential.session.sinks
import differential.session.sinks.kafka
import differential.session.sinks.postgresql
import differential.session.sources
import differential.session.sources.kafka
import differential.session.sources.postgresql
import differential.trace.events
import differential.trace.log
import timely
import timely.capture
import timely.capture.event
import timely.data.container
import timely.data.text
import timely.dataflow.pact
import timely.errors
import timely.graphlinq
import timely.observe.accounts
import timely.observe.events
import timely.observe.log
import timely.order
import timely.progress
from timely.dataflow.streams import ScopeCore

PACKAGES = (
    timely,
    timely.observe.accounts,
    timely.capture,
    timely.capture.event,
    timely.data.container,
    timely.dataflow.pact,
    timely.errors,
    timely.observe.events,
    timely.graphlinq,
    timely.observe.log,
    timely.order,
    timely.progress,
    timely.data.text,
    differential,
    differential.capture,
    differential.delta,
    differential.durable,
    differential.trace.events,
    differential.graphs,
    differential.lowlevel,
    differential.session,
    differential.session.sinks,
    differential.session.sinks.kafka,
    differential.session.sinks.postgresql,
    differential.session.sources,
    differential.session.sources.kafka,
    differential.session.sources.postgresql,
    differential.trace.log,
    differential.arrangement.reading,
)
BETWEEN_LAYERS = {
    "Antichain": {"admits", "of_minimal"},
    "Arrangement": {"with_updates"},
    "Capability": {"check", "live"},
    "CapabilitySet": {"hold", "is_any_due", "of"},
    "CapturedUpdates": {"from_parts", "parts"},
    "Collection": {"indexed"},
    "Columns": {"from_buffers", "to_buffers"},
    "Database": {"begin_round", "confirm", "end", "forget"},
    "Delivery": {"deliver", "left", "succeed", "take"},
    "Feed": {"end", "fail", "gather", "open", "settle", "statements", "stop", "take"},
    "Input": {"refuse_elsewhere", "send_owned"},
    "InputPort": {"arrive", "deliver", "locate", "pusher", "received", "take_only"},
    "Log": {"end"},
    "OpenShard": {"refuse_of_session", "take"},
    "OutputPort": {"answer", "connect", "give_owned", "time_of"},
    "Probe": {"schedule", "watch"},
    "Reader": {"Reader", "close", "confirm", "poll"},
    "Relation": {"indexed"},
    "Scope": {"stream"},
    "ScopeCore": {"stream", "summary_of_entering", "summary_to"},
    "Sink": {"Sink", "open"},
    "SinkWriter": {"SinkWriter", "clear", "close", "mark", "write"},
    "Source": {"Source", "open"},
    "State": {
        "activate_outputs",
        "begin",
        "bound",
        "final",
        "first_epoch",
        "first_time",
        "input_upper",
        "limit",
        "load_time",
        "made_of",
        "of",
        "use",
    },
    "Statement": {"from_parts", "parts"},
    "Tracker": {"fronts", "holding", "is_sole_holder"},
    "TraceObserver": {"TraceObserver", "dropped", "inserted", "merged"},
    "Updates": {"from_buffers", "to_buffers"},
    "Watch": {"deliver"},
    "Worker": {"close_inputs", "take_in"},
}
FUNCTIONS_BETWEEN_LAYERS = ["log_trace"]


def words(documented: object) -> set[str]:
    """Return the words of the examples of a docstring."""
    sources = [example.source for example in DocTestParser().get_examples(inspect.getdoc(documented) or "")]
    return set(re.findall(r"\w+", "".join(sources)))


def public(module: ModuleType) -> Iterator[Any]:
    """Yield the functions and classes that a module exports or, without `__all__`, defines."""
    own = [name for name, found in vars(module).items() if getattr(found, "__module__", "") == module.__name__]
    for name in getattr(module, "__all__", own):
        found = getattr(module, name)
        if not name.startswith("_") and (inspect.isfunction(found) or inspect.isclass(found)):
            yield found


def methods(owner: type) -> dict[str, Any]:
    """Return the public functions of a class by their names there, operators that it lists among them."""
    unwrapped = {name: getattr(found, "__func__", found) for name, found in vars(owner).items()}
    return {name: found for name, found in unwrapped.items() if name[0] != "_" and inspect.isfunction(found)}


def is_shown(function: Any, *aliases: str) -> bool:
    """Return whether the example of a function uses it, by its own name or another."""
    return not words(function).isdisjoint({function.__name__, *aliases})


def not_shown(owner: type) -> set[str]:
    """Return the methods of a class that no example uses, and the class itself if it has no example."""
    listed = methods(owner)
    own = {name for name, method in listed.items() if method.__qualname__ == f"{owner.__qualname__}.{name}"}
    shown = words(owner)
    missing = {name for name in own if name not in shown and not is_shown(listed[name])}
    missing |= {name for name in listed if name not in own and not is_shown(listed[name], name)}
    has_example = bool(shown) or any(words(listed[name]) for name in own)
    needs_none = is_dataclass(owner) or issubclass(owner, (tuple, Enum, Exception)) or len(listed) > len(own)
    return missing if has_example or needs_none else {*missing, owner.__name__}


FUNCTIONS = [found for package in PACKAGES for found in public(package) if inspect.isfunction(found)]
CLASSES = {found for package in PACKAGES for found in public(package) if inspect.isclass(found)}
CLASSES.add(ScopeCore)  # of which the class that programs name consists


def test_each_public_function_is_used_in_its_example() -> None:
    listed = [(name, method) for each in CLASSES for name, method in methods(each).items()]
    aliases = {each: [name for name, method in listed if method is each] for each in FUNCTIONS}
    assert len(FUNCTIONS) > 50
    assert [each.__qualname__ for each in FUNCTIONS if not is_shown(each, *aliases[each])] == FUNCTIONS_BETWEEN_LAYERS


@pytest.mark.interpreted
def test_each_public_class_and_its_methods_are_used_in_examples() -> None:
    assert sum(len(methods(each)) for each in CLASSES) > 200
    assert {each.__name__: names for each in CLASSES if (names := not_shown(each))} == BETWEEN_LAYERS


def test_a_name_without_an_example_is_reported() -> None:
    class Shown:
        """
        >>> Shown().used()
        """

        def used(self) -> None: ...

        def unused(self) -> None: ...

        sum = differential.Collection.sum
        total = differential.Collection.sum
        probe = is_shown

    class Bare:
        pass

    assert not_shown(Shown) == {"unused", "probe"}
    assert not_shown(Bare) == {"Bare"}
