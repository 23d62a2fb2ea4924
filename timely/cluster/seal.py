"""Seals: how processes that meet over a network recognise each other before they have the keys of their run.

A sealed text is one line. Only a holder of the same seal can make one, and `opened` refuses everything else. Two kinds:

- `Munge` asks the service by which the nodes of a Slurm cluster recognise their users. It encrypts, and decrypts for
  processes of the same user alone, so keys may be handed out under this seal.
- `KeyPairSeal` computes a code from keys that all processes already have. What is sealed can be read by anyone.

>>> public, secret = b"p" * 40, b"s" * 40
>>> seal = KeyPairSeal(public, secret)
>>> seal.opened(seal.sealed(b"process 1 is at 10.0.0.2"))
b'process 1 is at 10.0.0.2'
>>> KeyPairSeal(public, b"t" * 40).opened(seal.sealed(b"process 1 is at 10.0.0.2"))
Traceback (most recent call last):
    ...
timely.errors.TransportError: it was sealed with other keys
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import subprocess

from timely.errors import ConfigError, TransportError

_TAG = hashlib.sha256().digest_size
_SECONDS = 20.0
"""How long the service may take for one seal."""


class KeyPairSeal:
    """A seal by a pair of keys that all processes have."""

    keeps_secrets = False

    def __init__(self, public: bytes, secret: bytes) -> None:
        self._key = hashlib.blake2b(public + secret, digest_size=32, person=b"timely seal").digest()

    def sealed(self, text: bytes) -> bytes:
        tag = hmac.digest(self._key, text, "sha256")
        return base64.b64encode(tag + text)

    def opened(self, line: bytes) -> bytes:
        try:
            decoded = base64.b64decode(line, validate=True)
        except binascii.Error:
            raise TransportError("it is not a sealed text") from None
        tag, text = decoded[:_TAG], decoded[_TAG:]
        if not hmac.compare_digest(tag, hmac.digest(self._key, text, "sha256")):
            raise TransportError("it was sealed with other keys")
        return text


class Munge:
    """A seal by the service munged, which has to run on the machines of all processes."""

    keeps_secrets = True

    def sealed(self, text: bytes) -> bytes:
        done = _run(["munge", f"--restrict-uid={os.getuid()}"], text)
        if done.returncode != 0:
            raise ConfigError(
                f"munge cannot seal a message ({_reason(done)}); start munged on this machine, or make keys with "
                "'timely keys DIR', where all machines can read them, and pass --curve DIR"
            )
        return done.stdout.strip()

    def opened(self, line: bytes) -> bytes:
        done = _run(["unmunge", "--numeric", "--keys=UID"], line)
        if done.returncode != 0:
            raise TransportError(f"munge refuses it: {_reason(done)}")
        # The text may have an empty line of its own; the first one ends the head.
        head, _, text = done.stdout.partition(b"\n\n")
        user = head.partition(b":")[2].strip().decode()
        if user != str(os.getuid()):
            raise TransportError(f"it was sealed by user {user}, and this process belongs to user {os.getuid()}")
        return text


Seal = KeyPairSeal | Munge
"""Makes sealed lines and opens those of its kind.

`sealed` returns a line, without its end, that `opened` turns back into the text; `opened` raises `TransportError` if it
was not sealed by a process of this run. If a seal `keeps_secrets`, only those who can open a sealed text can read it.
"""


def _run(command: list[str], text: bytes) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(command, input=text, capture_output=True, timeout=_SECONDS)
    except FileNotFoundError:
        raise ConfigError(
            f"there is no command {command[0]!r} on this machine, by which the processes of a Slurm job recognise each "
            "other; make keys with 'timely keys DIR', where all machines can read them, and pass --curve DIR"
        ) from None
    except subprocess.TimeoutExpired:
        raise TransportError(f"{command[0]} has not answered for {_SECONDS:g} s") from None


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"status {done.returncode}"
