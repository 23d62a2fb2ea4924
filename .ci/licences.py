"""Print the licence of each package in a directory; status 1 if one is not among those that permit any use."""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, distributions

PERMISSIVE = re.compile(
    r"apache|bsd|mit\b|isc|psf|python software foundation|zlib|0bsd|cc0|llvm|mozilla|mpl|lgpl", re.IGNORECASE
)
"""Licences that allow others to ship a program that imports the package, as it is, under any licence."""


def licence_of(package: Distribution) -> str:
    """Return what the metadata state: an expression, the classifiers, or the first line of the text."""
    metadata = package.metadata
    classifiers = [
        each.rpartition("::")[2].strip() for each in metadata.get_all("Classifier") or [] if "License" in each
    ]
    text = metadata.get("License") or ""
    return (
        metadata.get("License-Expression") or ", ".join(classifiers) or text.strip().partition("\n")[0] or "not stated"
    )


def main() -> int:
    """Print a line per package; return the status."""
    status = 0
    for package in sorted(distributions(path=sys.argv[1:]), key=lambda each: each.metadata["Name"].lower()):
        licence = licence_of(package)
        is_known = PERMISSIVE.search(licence) is not None
        status |= not is_known
        print(f"{package.metadata['Name']} {package.version}: {licence}{'' if is_known else '  <- look at it'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
