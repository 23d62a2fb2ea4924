"""Random files of tweets, and an independent reading of them."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import NamedTuple


class Tweet(NamedTuple):
    """A tweet of a file."""

    time: int
    author: str
    mentions: list[str]
    tags: list[str]


def write_tweets(path: Path, seed: int, count: int, users: int = 8, tags: int = 5, gap: int = 3) -> list[Tweet]:
    """Write a file of random tweets, with comments and blank lines; return what it means."""
    random = Random(seed)
    time, lines = 1_700_000_000, ["# time, user and text", ""]
    found = []
    for _ in range(count):
        time += random.choice([0, 0, 1, gap])
        author = random.randrange(users)
        mentions = [random.randrange(users) for _ in range(random.choice([0, 1, 1, 2]))]
        used = [random.randrange(tags) for _ in range(random.choice([0, 1, 1, 3]))]
        words = [f"{random.choice('@')}{random.choice('uU')}{user}" for user in mentions]
        words += [f"#{random.choice('tT')}{tag}" for tag in used] + ["plain", "mail@host", "a#b"]
        random.shuffle(words)
        name = random.choice(["u", "U", "@u"]) + str(author)
        lines.append(f"{time}\t{name}\t{' '.join(words)}")
        text = " ".join(words).lower()
        pattern = r"(?:^|\s){}(\w+)"
        found.append(
            Tweet(time, f"u{author}", re.findall(pattern.format("@"), text), re.findall(pattern.format("#"), text))
        )
    path.write_text("\n".join(lines) + "\n")
    return found
