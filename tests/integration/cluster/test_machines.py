"""Files that start programs elsewhere, where they start them: in a container, and under a systemd of its own.

Both have a Debian that debootstrap installs, in place of the image of Python that a registry would have, and the wheel
of this checkout, whose modules are not compiled. Buildah needs no service, and isolates by a change of root alone. The
systemd is that of the image, booted in a container of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.integration.cluster.services import ANSWER, SCRIPT, TIMELY, alone, debian
from tests.integration.launcher.launching import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]
PACKAGES = "ca-certificates,dbus,python3,python3-pip,systemd,systemd-sysv"
CERTIFICATES = "/etc/ssl/certs"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NAME = Path(SCRIPT).stem
POWER_OFF = "[Service]\nExecStopPost=+/usr/bin/systemctl --no-block poweroff\n"
"""A setting that ends the machine with the service, so that the test does not have to wait for it."""


def run(command: Sequence[str], seconds: float, **options: str) -> str:
    """Run a command that must succeed; return what it prints."""
    environ = os.environ | options
    done = subprocess.run(
        command, cwd=ROOT, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


class Images:
    """Containers and images in a directory of their own."""

    def __init__(self, directory: Path) -> None:
        self._buildah = ["buildah", "--storage-driver", "vfs"]
        self._buildah += ["--root", str(directory / "storage"), "--runroot", str(directory / "run")]

    def __call__(self, *arguments: str, seconds: float = 120) -> str:
        return run([*self._buildah, *arguments], seconds).strip()

    def container(self, image: str) -> str:
        """Return the name of a new container of an image."""
        return self("from", "--pull-never", image)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Images]:
    """The image that the written file builds, under the name of the script."""
    if os.getuid() != 0:
        pytest.skip("needs root, who can install a Debian in a directory")
    for package, command in (("debootstrap",) * 2, ("buildah",) * 2, ("systemd-container", "systemd-nspawn")):
        debian(package, command)
    directory = tmp_path_factory.mktemp("machines")
    base, context = directory / "debian", directory / "context"
    with alone("debootstrap"):
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm", str(base)]
        if subprocess.run(command, capture_output=True, timeout=600).returncode:
            pytest.skip("needs a mirror of Debian, from which debootstrap installs")
    (base / "usr/bin/python").symlink_to("python3")
    for marker in (base / "usr/lib").glob("python3*/EXTERNALLY-MANAGED"):
        marker.unlink()  # an image of Python has none: pip may install for all users
    context.mkdir()
    # Kernels that are compiled for this version of Python here need not be compiled there.
    has_kernels = (base / f"usr/lib/python3.{sys.version_info.minor}").is_dir()
    pip = f"{sys.executable} -m pip wheel --quiet --no-deps --wheel-dir {context} ."
    run(pip.split(), 300, TIMELY_COMPILE="0", TIMELY_KERNELS="host" if has_kernels else "0")
    (wheel,) = context.glob("*.whl")
    (context / Path(SCRIPT).name).write_bytes(Path(SCRIPT).read_bytes())
    extras = [] if has_kernels else ["--extras", "compile"]
    written = run(
        [*TIMELY.split(), "containerfile", "--python", "3", "--wheel", wheel.name, *extras, Path(SCRIPT).name], 60
    )
    (context / "Containerfile").write_text(written)
    buildah = Images(directory)
    try:
        empty = buildah("from", "scratch")
        buildah("add", "--quiet", empty, str(base), "/")
        buildah("config", "--env", f"PATH={PATH}", empty)
        buildah("commit", "--quiet", empty, "docker.io/library/python:3-slim")
        trusted = ["--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"] if Path(CERTIFICATES).exists() else []
        trusted += ["--env", f"PIP_CERT={CERTIFICATES}/ca-certificates.crt"] if trusted else []
        options = ["--isolation", "chroot", "--pull-never", "--layers=false", *trusted, "--tag", f"localhost/{NAME}"]
        buildah("build", *options, "--file", str(context / "Containerfile"), str(context), seconds=600)
        yield buildah
    finally:
        buildah("rm", "--all")
        buildah("rmi", "--all", "--force")


def test_a_container_runs_the_program_as_an_ordinary_user(images: Images) -> None:
    container = images.container(f"localhost/{NAME}")
    command = images("inspect", "--format", "{{.OCIv1.Config.Entrypoint}} {{.OCIv1.Config.Cmd}}", container)
    assert command == f"[timely run] [{NAME}.py]"
    inside = ["run", "--isolation", "chroot", container, "--"]
    assert images(*inside, "id", "--user") == "1000"
    printed = images(*inside, "timely", "run", "-n", "2", f"{NAME}.py", seconds=400)
    assert f"[0] {ANSWER}" in printed.splitlines()


def test_a_systemd_runs_the_unit(images: Images) -> None:
    container = images.container(f"localhost/{NAME}")
    machine = Path(images("mount", container))
    inside = ["run", "--isolation", "chroot", "--user", "root", container, "--"]
    unit = images(*inside, "timely", "systemd", "-n", "2", "--state", f"/program/{NAME}.py")
    units = machine / "etc/systemd/system"
    (units / f"{NAME}.service").write_text(f"{unit}\n")
    (units / f"{NAME}.service.d").mkdir()
    (units / f"{NAME}.service.d" / "end.conf").write_text(POWER_OFF)
    wanted = units / "multi-user.target.wants"
    wanted.mkdir(exist_ok=True)
    (wanted / f"{NAME}.service").symlink_to(f"/etc/systemd/system/{NAME}.service")
    (machine / "var/log/journal").mkdir(parents=True, exist_ok=True)  # so that the log outlives the machine
    boot = ["systemd-nspawn", f"--directory={machine}", "--boot", "--register=no", "--keep-unit", "--link-journal=no"]
    console = run(["timeout", "--kill-after=10", "400", *boot], 450)
    log = run(["journalctl", "--directory", str(machine / "var/log/journal"), "--unit", NAME, "--output", "cat"], 60)
    assert f"[0] {ANSWER}" in log.splitlines(), f"{log}\n{console[-2000:]}"
    assert f"{NAME}.service: Deactivated successfully." in log.splitlines()
    assert (machine / "var/lib/private" / NAME).is_dir(), "the service had no directory for its state"
