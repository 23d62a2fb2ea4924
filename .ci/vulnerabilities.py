"""Print the known vulnerabilities of each package in a directory; status 1 if one has any, or cannot be checked.

pip-audit asks the index about each package in its version. A mirror of the index may describe the newest version only:
that page is read for packages that pip-audit had no answer about, if they are of that version.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

from packaging.utils import canonicalize_name

PAGE = "https://pypi.org/pypi/{}/json"
"""What the index has about the newest version of a package."""
SECONDS = 60
"""How long the index may take to answer."""


def audited(directory: str) -> dict[str, list[str] | None]:
    """Return the vulnerabilities of each package as pip-audit reports them, None where it had no answer."""
    command = [sys.executable, "-m", "pip_audit", "--path", directory, "--format", "json", "--progress-spinner", "off"]
    audit = subprocess.run(command, capture_output=True, text=True, check=False)
    if not audit.stdout:
        print(audit.stderr, file=sys.stderr)
        return {}
    return {
        canonicalize_name(each["name"]): None if "skip_reason" in each else [found["id"] for found in each["vulns"]]
        for each in json.loads(audit.stdout)["dependencies"]
    }


def on_its_page(package: Distribution) -> list[str] | None:
    """Return the vulnerabilities that the index has for a package, None unless it is of the newest version."""
    try:
        with urlopen(PAGE.format(package.metadata["Name"]), timeout=SECONDS) as answer:
            page: dict[str, Any] = json.load(answer)
    except (URLError, TimeoutError, json.JSONDecodeError):
        return None
    if page["info"]["version"] != package.version or "vulnerabilities" not in page:
        return None
    return [each["id"] for each in page["vulnerabilities"] if not each.get("withdrawn")]


def lines(directory: str) -> Iterator[tuple[bool, str]]:
    """Yield whether a package has no known vulnerability, and what is known, for each package in `directory`."""
    answers = audited(directory)
    for package in sorted(distributions(path=[directory]), key=lambda each: each.metadata["Name"].lower()):
        known = answers.get(canonicalize_name(package.metadata["Name"]))
        if known is None:
            known = on_its_page(package)
        if known is None:
            yield False, f"{package.metadata['Name']} {package.version}: NOT CHECKED, the index has no answer about it"
        else:
            yield not known, f"{package.metadata['Name']} {package.version}: {', '.join(known) or 'none known'}"


def main() -> int:
    """Print a line per package; return the status."""
    status = 0
    for is_clear, line in lines(sys.argv[1]):
        print(line)
        status |= not is_clear
    return status


if __name__ == "__main__":
    sys.exit(main())
