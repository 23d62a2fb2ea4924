"""Check the bill of materials in a wheel against the schema of CycloneDX; print what is in it."""

from __future__ import annotations

import json
import sys
from zipfile import ZipFile

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator


def main() -> int:
    """Return 0 if there is one bill, and it is valid."""
    with ZipFile(sys.argv[1]) as wheel:
        (name,) = [each for each in wheel.namelist() if "/sboms/" in each]
        text = wheel.read(name).decode()
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if error is not None:
        print(f"{name}: {error}")
        return 1
    print(name, *(part["bom-ref"] for part in json.loads(text)["components"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
