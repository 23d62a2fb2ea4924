"""Bytes from outside are refused or understood, and nothing else: a short run near the findings of long ones."""

from __future__ import annotations

import random

import pytest

from tests.fuzz.frames import one_input
from tests.fuzz.seeds import corpus, seeds

INPUTS = 40_000
_TELLING = bytes((0, 1, 2, 4, 8, 0x40, 0x7F, 0x80, 0x90, 0x92, 0xC0, 0xC7, 0xCF, 0xD3, 0xFF))


def test_the_seeds_are_understood() -> None:
    assert all(map(one_input, seeds()))


def test_the_corpus_holds_both_refused_and_understood_frames() -> None:
    kept = corpus()
    assert len(kept) > 50
    assert len(set(map(one_input, kept))) == 2


@pytest.mark.parametrize("seed", range(2))
def test_damaged_seeds_are_refused_or_understood(seed: int) -> None:
    rng = random.Random(seed)
    pool = [*seeds(), *corpus()]
    understood = sum(one_input(damaged(rng, pool)) for _ in range(INPUTS // 2))
    assert 0 < understood < INPUTS // 2


def damaged(rng: random.Random, pool: list[bytes]) -> bytes:
    """Return an input of the pool with bytes changed, cut out, repeated, or taken from another one."""
    data = bytearray(rng.choice(pool))
    for _ in range(rng.randrange(1, 5)):
        start = rng.randrange(len(data) + 1)
        end = min(len(data), start + rng.randrange(1, 9))
        choice = rng.randrange(5)
        if choice == 0:
            del data[start:end]
        elif choice == 1:
            data[start:start] = data[start:end]
        elif choice == 2:
            other = rng.choice(pool)
            data[start:end] = other[start : start + rng.randrange(1, 17)]
        elif choice == 3:
            data[start:end] = bytes(rng.choices(_TELLING, k=end - start))
        elif start < len(data):
            data[start] ^= 1 << rng.randrange(8)
    return bytes(data)
