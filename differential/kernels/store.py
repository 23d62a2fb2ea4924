"""The files of compiled kernels: one directory for each user of a machine, shared by all installations.

`DIFFERENTIAL_CACHE_DIR` names the directory. Otherwise it is `timely-dataflow` in `NUMBA_CACHE_DIR` or, without that,
`timely-dataflow/kernels` in the user's cache directory, which is `XDG_CACHE_HOME` or `~/.cache`.

An entry is a file: a mark; a digest of all that follows; a key that spells out everything the entry depends on; and a
payload, which is a pickle with machine code in it. A pickle runs what it names, and machine code with a flipped bit
computes wrong answers. So a payload leaves this module only if

- every directory from the user's cache directory down belongs to this user or to root, and nobody else can write to it;
- so does the file, which is opened relative to the directory that was checked, through no link, and checked once open;
- its digest and its key are right.

Every failure is reported on stderr in a line. An entry that is unsafe or damaged is removed, and compiled again.
Without a safe directory that can be written, each process keeps to itself what it compiles.

An entry is written to a file of its own, which is then renamed. So a reader finds all of it or nothing, and of several
writers the last one wins. An entry that nobody has used for `UNUSED_DAYS` is removed when another one is written. The
modification time of its file is the time of its last use, to within a day.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

DIRECTORY_VARIABLE = "DIFFERENTIAL_CACHE_DIR"
UNUSED_DAYS = 90
SUFFIX = ".kernel"

_PARTIAL = ".partial"
_MARK = b"timely-dataflow kernel 1\n"
_DIGEST_BYTES = 32
_DAY = 86_400.0
_IS_POSIX = os.name == "posix"
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_READ = os.O_RDONLY | _NO_LINK | _BINARY | getattr(os, "O_NONBLOCK", 0)  # a named pipe must not block
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK | _BINARY

_reported: set[str] = set()


class UnsafeError(Exception):
    """A file or a directory is not safe, or is not what it should be."""


def report(text: str) -> None:
    """Print a text on stderr as one line, once in this process."""
    line = f"differential: {' '.join(text.split())}"
    if line not in _reported:
        _reported.add(line)
        print_line(line)


def print_line(line: str) -> None:
    """Print a line on stderr, if there is one: `print` would write to standard output instead."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # stderr is closed, or in use at this moment
            print(f"{line}\n", end="", file=sys.stderr, flush=True)


class KernelStore:
    """The directory of compiled kernels. `root` is the user's cache directory, which contains it or is it."""

    def __init__(self, root: Path, directory: Path) -> None:
        self.root = root
        self.directory = directory

    @staticmethod
    def of_user(environ: Mapping[str, str] | None = None) -> KernelStore:
        """Return the store to which the environment points.

        >>> KernelStore.of_user({"DIFFERENTIAL_CACHE_DIR": "/var/cache/kernels"}).directory.as_posix()
        '/var/cache/kernels'
        >>> KernelStore.of_user({"NUMBA_CACHE_DIR": "/var/cache/numba"}).directory.as_posix()
        '/var/cache/numba/timely-dataflow'
        >>> KernelStore.of_user({"XDG_CACHE_HOME": "/home/ada/.cache"}).directory.as_posix()
        '/home/ada/.cache/timely-dataflow/kernels'
        """
        given = os.environ if environ is None else environ
        if own := given.get(DIRECTORY_VARIABLE):
            return KernelStore(Path(os.path.abspath(own)), Path(os.path.abspath(own)))
        if numba := given.get("NUMBA_CACHE_DIR"):
            root = Path(os.path.abspath(numba))
            return KernelStore(root, root / "timely-dataflow")
        named = given.get("XDG_CACHE_HOME", "")  # relative paths are invalid there
        root = Path(named if os.path.isabs(named) else os.path.expanduser("~/.cache"))
        return KernelStore(root, root / "timely-dataflow" / "kernels")

    def is_usable(self) -> bool:
        """Return whether the directory is there and safe; report what is wrong otherwise."""
        with self._reported(), self._opened():
            return True
        return False

    def has(self, name: str) -> bool:
        """Return whether there is an entry, whole or damaged."""
        with self._reported(), self._opened() as place, contextlib.suppress(FileNotFoundError):
            os.stat(self._at(name), dir_fd=place, follow_symlinks=False)
            return True
        return False

    def read(self, name: str, key: str) -> bytes | None:
        """Return the payload of an entry, or None unless it is there, safe, whole and of this key."""
        with self._reported(), self._opened() as place, contextlib.suppress(FileNotFoundError):
            found = os.stat(self._at(name), dir_fd=place, follow_symlinks=False)
            try:
                payload = _payload(content_of(self._at(name), place), key)
            except FileNotFoundError:
                return None
            except (OSError, UnsafeError) as error:
                self._discard(place, name, found, _reason(error))
                return None
            if found.st_mtime < time.time() - _DAY:
                with contextlib.suppress(OSError):  # the file may be root's, who then removes it some day
                    os.utime(self._at(name), dir_fd=place, follow_symlinks=False)
            return payload
        return None

    def write(self, name: str, key: str, payload: bytes) -> None:
        """Keep an entry, and remove those that nobody has used for long."""
        body = key.encode() + b"\0" + payload
        with self._reported(), self._opened() as place:
            # Containers that share the directory may have equal process numbers.
            partial = self._at(f"{name}.{os.getpid()}-{os.urandom(4).hex()}{_PARTIAL}")
            try:
                with open(os.open(partial, _WRITE, 0o600, dir_fd=place), "wb") as file:
                    file.write(sealed(_MARK, body))
                os.replace(partial, self._at(name), src_dir_fd=place, dst_dir_fd=place)
            finally:
                with contextlib.suppress(OSError):  # it has been renamed, unless something failed
                    os.unlink(partial, dir_fd=place)
            self._prune(place)

    def discard(self, name: str, reason: str) -> None:
        """Remove an entry that is of no use, and report that."""
        with self._reported(), self._opened() as place, contextlib.suppress(FileNotFoundError):
            found = os.stat(self._at(name), dir_fd=place, follow_symlinks=False)
            self._discard(place, name, found, reason)

    def _discard(self, place: int | None, name: str, found: os.stat_result, reason: str) -> None:
        """Remove what was found, and report it, unless another process has removed or renewed it meanwhile."""
        try:
            now = os.stat(self._at(name), dir_fd=place, follow_symlinks=False)
            # Another process may have replaced the damaged entry by a whole one since it was read.
            if _identity(now) != _identity(found):
                return
            (os.rmdir if stat.S_ISDIR(now.st_mode) else os.unlink)(self._at(name), dir_fd=place)
        except FileNotFoundError:
            return
        except OSError:  # it stays, so the compiled kernel cannot be kept either, and `write` reports that
            pass
        report(f"{self.directory / name} {reason}; this kernel is compiled again")

    def _prune(self, place: int | None) -> None:
        now = time.time()
        ages = {SUFFIX: UNUSED_DAYS * _DAY, _PARTIAL: _DAY}
        with os.scandir(self.directory if place is None else place) as entries:
            for entry in entries:
                age = ages.get(os.path.splitext(entry.name)[1])
                with contextlib.suppress(OSError):  # another process has removed it, or it is a directory
                    if age is not None and entry.stat(follow_symlinks=False).st_mtime < now - age:
                        os.unlink(self._at(entry.name), dir_fd=place)

    def _at(self, name: str) -> str:
        """Return the path of an entry, relative to the open directory where there is one."""
        return name if _IS_POSIX else str(self.directory / name)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int | None]:
        """Open the directory, made if it is missing, and check that it is safe.

        It is opened for each use, not once: a program that becomes a daemon closes all descriptors.
        """
        if not self.root.is_absolute():
            raise UnsafeError(f"{self.root}: no home directory is known")
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        if not _IS_POSIX:
            os.makedirs(self.directory, exist_ok=True)
            yield None
            return
        if _is_foreign(os.lstat(self.root)):
            raise UnsafeError(f"{self.root} {_complaint(os.lstat(self.root))}")
        path = self.root
        place = os.open(path, os.O_RDONLY | os.O_DIRECTORY)  # the root may be a link, but nothing below it
        try:
            self._check(place, path)
            for part in self.directory.relative_to(self.root).parts:
                path /= part
                inner = _opened_inside(place, part)
                os.close(place)
                place = inner
                self._check(place, path)
            yield place
        finally:
            os.close(place)

    def _check(self, place: int, path: Path) -> None:
        """Refuse a directory to which somebody else can write.

        Of a directory above that of the entries, such as /tmp, it is enough that nobody else can rename its content.
        """
        status = os.fstat(place)
        is_sticky = path != self.directory and bool(status.st_mode & stat.S_ISVTX)
        if complaint := _complaint(status, is_sticky):
            is_own = status.st_uid == os.geteuid() and not status.st_mode & stat.S_ISVTX
            raise UnsafeError(f"{path} {complaint}" + (f" ('chmod go-w {path}' changes that)" if is_own else ""))

    @contextlib.contextmanager
    def _reported(self) -> Iterator[None]:
        """Report why the directory cannot be used, and go on without it."""
        try:
            yield
        except (OSError, UnsafeError) as error:
            reason = str(error) if isinstance(error, UnsafeError) else f"{self.directory}: {_strerror(error)}"
            report(
                f"kernels that this process compiles are not kept for others: {reason}; {DIRECTORY_VARIABLE} can name "
                "another directory"
            )


def content_of(path: str | Path, place: int | None = None) -> bytes:
    """Return the content of a file; raise `UnsafeError` unless it is a file that nobody else can have written.

    A relative path is one in the directory `place`, which is open.
    """
    descriptor = os.open(path, _READ, dir_fd=place)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UnsafeError("is not a regular file")
        if complaint := _complaint(status):
            raise UnsafeError(complaint)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _opened_inside(place: int, name: str) -> int:
    """Open a directory inside another one; if it is missing, make it for this user alone."""
    flags = os.O_RDONLY | os.O_DIRECTORY | _NO_LINK
    with contextlib.suppress(FileNotFoundError):
        return os.open(name, flags, dir_fd=place)
    with contextlib.suppress(FileExistsError):  # another process was faster
        os.mkdir(name, 0o700, dir_fd=place)
    return os.open(name, flags, dir_fd=place)


def _is_foreign(status: os.stat_result) -> bool:
    return _IS_POSIX and status.st_uid not in (0, os.geteuid())


def _complaint(status: os.stat_result, is_sticky: bool = False) -> str:
    """Return why a file or directory of this status is not safe, or an empty string."""
    if _is_foreign(status):
        return f"belongs to another user ({status.st_uid})"
    if _IS_POSIX and not is_sticky and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"can be written by {'all users' if status.st_mode & stat.S_IWOTH else 'its group'}"
    return ""


def _identity(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_mtime_ns, status.st_size


def sealed(mark: bytes, body: bytes) -> bytes:
    """Return the content of a file: a mark, a digest of the body, and the body."""
    return mark + hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest() + body


def unsealed(mark: bytes, content: bytes) -> bytes:
    """Return the body of a file with this content; raise `UnsafeError` if it is damaged."""
    body = content[len(mark) + _DIGEST_BYTES :]
    if content != sealed(mark, body):
        raise UnsafeError("is damaged")
    return body


def _payload(content: bytes, key: str) -> bytes:
    """Return the payload of an entry with this content; raise `UnsafeError` if it is damaged or of another key."""
    body, own = unsealed(_MARK, content), key.encode() + b"\0"
    if not body.startswith(own):
        raise UnsafeError("is of another kernel")
    return body[len(own) :]


def _reason(error: OSError | UnsafeError) -> str:
    """Return why an entry cannot be read, in words that follow its path."""
    if isinstance(error, UnsafeError):
        return str(error)
    return "is a link" if error.errno == errno.ELOOP else f"cannot be read ({_strerror(error)})"


def _strerror(error: OSError) -> str:
    return error.strerror or type(error).__name__
