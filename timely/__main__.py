"""`python -m timely` is the command `timely`."""

import sys

from timely.run.command import main

if __name__ == "__main__":
    sys.exit(main())
