"""The shared memory of one worker: a ring for each worker of another process on this machine, and a bell.

The memory belongs to the receiver. It is a file in memory without a name in any directory (`memfd_create`), so nothing
is left behind, however processes end. A hello offers it to the peer as `PID/FILE/BELL/NAME/SLOT`: the numbers of two
descriptors of this process, the name of the file, of which 128 bits are random, and the place of the ring. The peer
opens the descriptors through `/proc/PID/fd`. The kernel permits this only on the same machine, and only to the same
user and root. The peer checks the name, the owner, the size, and that the file cannot shrink. Where any of this fails,
messages go by the socket: the peer is on another machine, in another container or of another user, or there is no
`/proc`.

**Waking.** A receiver sets `ASLEEP` in its rings before it looks at them for the last time; a sender looks at `ASLEEP`
after it has written, and rings the bell, a pipe, if it is set. Both pass a `Fence` in between, so either the receiver
sees the message or the sender sees that it must ring.
"""

from __future__ import annotations

import fcntl
import os
import platform
import secrets
import sys
from contextlib import ExitStack, suppress
from mmap import mmap
from threading import Lock

from timely.communication.ring import PAGE, RING_BYTES, RingReader, RingWriter

ARE_POSSIBLE = sys.platform == "linux" and platform.machine() == "x86_64" and hasattr(os, "memfd_create")
"""Whether this system and processor have what rings rely on: nameless files, and stores that are seen in order."""

_SLOT = PAGE + RING_BYTES


class Fence:
    """Orders the stores before a pass ahead of the loads after it: to take a free lock is an atomic instruction.

    >>> Fence().pass_through()
    """

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = Lock()

    def pass_through(self) -> None:
        """Take the lock and release it. Only one thread may use a fence, so that the lock is free."""
        self._lock.acquire()
        self._lock.release()


class Inbox:
    """A worker's rings, one for each peer in the order given, and its bell.

    >>> if ARE_POSSIBLE:
    ...     inbox = Inbox(peers=[4, 5])
    ...     outlet = RingOutlet.open(inbox.offer(5))
    ...     print(outlet.put(1, [b"message"]), inbox.readers[5].take(), inbox.readers[4].is_ready(1))
    ...     outlet.close()
    ...     inbox.close()
    ... else:
    ...     print("True [b'message'] False")
    True [b'message'] False
    """

    def __init__(self, peers: list[int]) -> None:
        """Make the rings; raise OSError if the system has no memory or no descriptors for them."""
        self._name = f"timely-rings-{secrets.token_hex(16)}"
        self._fence = Fence()
        self._slots = {peer: slot for slot, peer in enumerate(peers)}
        self.readers: dict[int, RingReader] = {}
        with ExitStack() as made:  # closes what there is if the rest cannot be made: sockets need the descriptors
            self._file = os.memfd_create(self._name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            made.callback(os.close, self._file)
            self._bell, self._ringer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            made.callback(os.close, self._bell)
            made.callback(os.close, self._ringer)
            os.fchmod(self._file, 0o600)
            os.ftruncate(self._file, _SLOT * len(peers))
            # After the size is set, which is final then: if the file shrank, an access by a peer would end the peer
            # (SIGBUS).
            fcntl.fcntl(self._file, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
            for peer, slot in self._slots.items():
                self.readers[peer] = RingReader(mmap(self._file, _SLOT, offset=_SLOT * slot))
                made.callback(self.readers[peer].close)
            made.pop_all()

    def offer(self, peer: int) -> str:
        """Return what the peer needs to open its ring."""
        return f"{os.getpid()}/{self._file}/{self._ringer}/{self._name}/{self._slots[peer]}"

    def fileno(self) -> int:
        """Return the descriptor of the bell, to wait for."""
        return self._bell

    def set_asleep(self, value: bool) -> None:
        """Record for all senders whether this worker sleeps. After it was set, look at the rings once more."""
        for reader in self.readers.values():
            reader.set_asleep(value)
        if value:
            self._fence.pass_through()

    def clear(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._bell, 256)

    def close(self) -> None:
        """Release the memory and the bell. Peers that have mapped the memory keep it until they close."""
        for reader in self.readers.values():
            reader.close()
        for descriptor in (self._file, self._bell, self._ringer):
            os.close(descriptor)


class RingOutlet:
    """The ring to one worker of another process, and the bell of that worker."""

    def __init__(self, writer: RingWriter, bell: int) -> None:
        self._writer = writer
        self._bell = bell
        self._fence = Fence()

    @staticmethod
    def open(offer: str) -> RingOutlet | None:
        """Return the outlet that a peer offers, or None if this process cannot share memory with it."""
        opened: list[int] = []
        try:
            pid, file, ringer, name, slot = offer.split("/")
            directory = f"/proc/{int(pid)}/fd"
            # The name is checked before anything is opened: elsewhere, the numbers may be those of other files.
            if os.readlink(f"{directory}/{int(file)}") != f"/memfd:{name} (deleted)":
                return None
            if not os.readlink(f"{directory}/{int(ringer)}").startswith("pipe:["):
                return None
            opened.append(os.open(f"{directory}/{int(file)}", os.O_RDWR | os.O_CLOEXEC))
            status = os.fstat(opened[0])
            end = _SLOT * (int(slot) + 1)
            seals = fcntl.fcntl(opened[0], fcntl.F_GET_SEALS)
            is_safe = status.st_uid == os.geteuid() and seals & fcntl.F_SEAL_SHRINK and 0 < end <= status.st_size
            if not is_safe:
                return None
            # For reading, too: a pipe that its receiver has closed by ending would raise SIGPIPE in this process.
            opened.append(os.open(f"{directory}/{int(ringer)}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
            # `mmap` keeps a descriptor of its own, so both of these are closed below.
            return RingOutlet(RingWriter(mmap(opened[0], _SLOT, offset=end - _SLOT)), os.dup(opened[1]))
        except (OSError, ValueError):
            return None
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def put(self, number: int, frames: list[bytes | memoryview]) -> bool:
        """Append a message and wake the receiver if it sleeps; return whether there was room."""
        writer = self._writer
        if not writer.put(number, frames):
            return False
        self._fence.pass_through()
        if writer.is_receiver_asleep:
            # In this order: once the bell rings the receiver may set its flag to sleep again, which this must not
            # clear.
            writer.note_woken()
            with suppress(OSError):  # the pipe is full, so the receiver wakes; or the receiver has ended
                os.write(self._bell, b"\0")
        return True

    def close(self) -> None:
        self._writer.close()
        os.close(self._bell)
