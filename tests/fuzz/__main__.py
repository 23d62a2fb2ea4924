"""Fuzz, guided by coverage: `python -m tests.fuzz DIRECTORY [-runs=N] [-max_total_time=SECONDS]`.

It needs `pip install atheris`. The directory keeps what reached new branches; options are libFuzzer's.
`python -m tests.fuzz --keep DIRECTORY` makes the corpus of what is there.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

KEPT_BYTES = 300
"""The corpus keeps short inputs only."""


def main() -> None:
    """Do what the arguments say."""
    if sys.argv[1] == "--keep":
        keep(Path(sys.argv[2]))
        return
    import atheris

    with atheris.instrument_imports(include=["timely.communication", "timely.container", "timely.captured"]):
        import timely.captured
        import timely.communication.event_codec
        import timely.container  # noqa: F401
    with atheris.instrument_imports(include=["differential.updates", "differential.capture"]):
        import differential.capture
        import differential.updates  # noqa: F401
    from tests.fuzz.frames import one_input
    from tests.fuzz.seeds import corpus, seeds

    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for data in (*seeds(), *corpus()):
        (directory / hashlib.sha1(data).hexdigest()).write_bytes(data)
    atheris.Setup([sys.argv[0], str(directory), *sys.argv[2:]], lambda data: one_input(data) and None)
    atheris.Fuzz()


def keep(directory: Path) -> None:
    """Write the corpus of the inputs in a directory."""
    from tests.fuzz.seeds import CORPUS

    inputs = [path.read_bytes() for path in directory.iterdir()]
    short = sorted((data for data in inputs if len(data) <= KEPT_BYTES), key=lambda data: (len(data), data))
    CORPUS.write_text("".join(f"{data.hex()}\n" for data in short))


if __name__ == "__main__":
    main()
