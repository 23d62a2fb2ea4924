"""`timely containerfile`: the file from which podman, buildah or docker build an image of a program.

The image has this package, from the index or from a wheel, and the script; its entry point is `timely run`. Keys are
not in the image: whoever has it would have them. `timely k8s` hands them to pods as a secret, and for containers that
are started by hand the file shows how.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from timely.errors import ConfigError

_SPECIAL = frozenset(' "$*?[\\')
"""Characters that COPY does not take as part of a name."""
_TEMPLATE = """\
# Written by 'timely containerfile'. Build and run it by
#   podman build -t {name} -f Containerfile .
#   podman run --rm {name} -n 2 {script}
# On several machines, give each container the keys that 'timely keys keys' makes, as a secret:
#   podman secret create timely-keys keys/cluster.key
#   podman run --rm --network host --secret timely-keys,target=/keys/cluster.key,uid=1000,mode=0400 \\
#     -v ./hosts:/hosts:ro {name} --hostfile /hosts --process 0 --curve /keys {script}
FROM python:{python}-slim
ENV PYTHONUNBUFFERED=1
{install}
WORKDIR /program
COPY {files} ./
USER 1000
STOPSIGNAL SIGTERM
ENTRYPOINT ["timely", "run"]
CMD {command}
"""


def text(options: argparse.Namespace) -> str:
    """Return the file that the options of `timely containerfile` ask for."""
    if not options.target:
        raise ConfigError("nothing to run: give the script and its arguments")
    paths = [options.target[0], *options.file]
    for path in paths:
        is_below = not Path(path).is_absolute() and ".." not in Path(path).parts
        if not is_below or not path.isprintable() or _SPECIAL.intersection(path):
            raise ConfigError(
                f"{path!r} cannot be copied: name files below the directory that the image is built from, "
                f"without spaces and {' '.join(sorted(_SPECIAL - {' '}))}"
            )
    extras = f"[{options.extras}]" if options.extras else ""
    if options.wheel is None:
        from importlib import metadata

        copied, package = "", f"timely-dataflow{extras}=={metadata.version('timely-dataflow')}"
    else:
        place = f"/tmp/{Path(options.wheel).name}"
        copied, package = f"COPY {json.dumps([options.wheel, place])}\n", f"{place}{extras}"
    install = f'{copied}RUN pip install --no-cache-dir "{package}" && useradd --uid 1000 --create-home timely'
    script = Path(options.target[0]).name
    return _TEMPLATE.format(
        name=Path(script).stem.lower(),
        script=script,
        python=options.python,
        install=install,
        files=" ".join(paths),
        command=json.dumps([script, *options.target[1:]]),
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    parser.add_argument("--python", default=version, metavar="VERSION", help=f"version of Python (default: {version})")
    parser.add_argument("--wheel", metavar="FILE", help="install this wheel instead of the published package")
    parser.add_argument("--extras", metavar="NAMES", help="extras to install with it, such as durable")
    parser.add_argument("--file", action="append", default=[], metavar="FILE", help="copy this file, too")
    parser.add_argument("target", nargs=argparse.REMAINDER, metavar="SCRIPT ...", help="the script and its arguments")
