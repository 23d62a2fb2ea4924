"""YAML that people read: mappings and lists in blocks, and text in quotes wherever it could be read as something else.

Only what manifests consist of can be written: dictionaries with names as keys, lists, text, numbers and truth values.

>>> print(document({"kind": "Job", "spec": {"completions": 2, "args": ["-n", "2"], "volumes": []}}), end="")
kind: Job
spec:
  completions: 2
  args:
    - "-n"
    - "2"
  volumes: []
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

Value = dict[str, "Value"] | list["Value"] | str | int | bool

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9/._-]*( [A-Za-z0-9/._-]+)*")
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
"""Words that are not text in one version of YAML or another."""


def document(value: Value) -> str:
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Value) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for name, each in value.items():
            first, *rest = _lines(each)
            if isinstance(each, (dict, list)) and each:
                yield f"{_scalar(name)}:"
                yield f"  {first}"
            else:
                yield f"{_scalar(name)}: {first}"
            yield from (f"  {line}" for line in rest)
    elif isinstance(value, list) and value:
        for each in value:
            first, *rest = _lines(each)
            yield f"- {first}"
            yield from (f"  {line}" for line in rest)
    else:
        yield _scalar(value)


def _scalar(value: Value) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    # What begins with a letter or "/" and has neither ":" nor "#" is text in every version of YAML, but for some words.
    if _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    # JSON writes characters beyond 16 bits as two, which YAML does not put together.
    return '"' + "".join(json.dumps(c)[1:-1] if " " <= c <= "~" else f"\\U{ord(c):08x}" for c in value) + '"'
