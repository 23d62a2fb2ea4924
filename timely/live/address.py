"""Where the page is served, and what that takes.

An address is a port of this machine's loopback interface, or HOST:PORT. Other machines can reach a HOST that is not
loopback. That is refused without a token that the user chose, and TLS, since whoever reads the traffic has the token.
"""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import dataclass, replace
from ipaddress import ip_address
from urllib.parse import urlsplit

from timely.config import is_loopback
from timely.errors import ConfigError
from timely.live.serving import Access, listen

FIRST_PORT = 8400
PORTS_TRIED = 20
TOKEN_VARIABLE, CERTIFICATE_VARIABLE, KEY_VARIABLE = "TIMELY_LIVE_TOKEN", "TIMELY_LIVE_CERTIFICATE", "TIMELY_LIVE_KEY"


@dataclass(frozen=True)
class Address:
    """Where to serve the page. Without a `port`, the first free one from 8400 on; port 0 is any that is free."""

    host: str
    port: int | None
    token: str
    certificate: tuple[str, str] | None
    what: str = "the live page"

    def at(self, process: int) -> Address:
        """Return where a process of a run serves, if the first one does here."""
        return self if self.port is None else replace(self, port=self.port + process)

    def listen(self) -> socket.socket:
        """Return a socket that listens here; raise ConfigError if that cannot be."""
        ports = range(FIRST_PORT, FIRST_PORT + PORTS_TRIED) if self.port is None else [self.port]
        trouble: OSError | None = None
        for port in ports:
            try:
                return listen(self.host, port)
            except OSError as error:
                trouble = error
        assert trouble is not None
        where = f"{self.host}:{ports[0]}" + (f" to {ports[-1]}" if len(ports) > 1 else "")
        raise ConfigError(f"{self.what} cannot be served at {where}: {trouble.strerror}; choose another port")


def address_of(text: str, token: str | None = None, certificate: tuple[str, str] | None = None) -> Address:
    """Return the address that `text` names: a port or HOST:PORT; or `auto`, or nothing, for the first free port.

    The token and the files for TLS come from the environment unless they are given; without a token, one is made.
    Raises ConfigError for an address that other machines can reach unless a token and TLS are given.

    >>> address_of("8500").host, address_of("8500").port, address_of("[::1]:0").host, address_of("").port
    ('127.0.0.1', 8500, '::1', None)
    """
    host, colon, port = ("" if text == "auto" else text).rpartition(":")
    host = host.strip("[]") if colon else "127.0.0.1"
    host = "127.0.0.1" if host == "localhost" else host
    try:
        number = int(port) if port else None
        ip_address(host)
    except ValueError:
        raise ConfigError(
            "the live page (--live) takes a port, or HOST:PORT with the number of an interface of this machine, not "
            f"{text!r:.80}"
        ) from None
    if number is not None and not 0 <= number < 65536:
        raise ConfigError(f"the live page (--live) takes a port from 0 to 65535, not {number}")
    given = token or os.environ.get(TOKEN_VARIABLE)
    certificate = certificate or _certificate()
    if given is not None:
        Access.check_token(f"the token of the live page ({TOKEN_VARIABLE})", given)
    if not is_loopback(host) and (given is None or certificate is None):
        raise ConfigError(
            f"other machines can reach {host}, so the live page needs a token and TLS there: set {TOKEN_VARIABLE}, and "
            f"{CERTIFICATE_VARIABLE} and {KEY_VARIABLE} to files; or serve it at 127.0.0.1 and use an SSH tunnel"
        )
    return Address(host, number, given or _new_token(), certificate)


def metrics_address(text: str, processes: int) -> Address:
    """Return where the first of some processes serves its metrics, at a port or HOST:PORT; the others follow.

    Raises ConfigError where `address_of` does, and without a token and a port that Prometheus can know.
    """
    address = replace(address_of(text), what="the page with metrics")
    if not address.port or address.port + processes > 1 << 16:
        raise ConfigError(
            f"metrics (--metrics) take a port, and one more for each further process, all below 65536, not {text!r:.80}"
        )
    if not os.environ.get(TOKEN_VARIABLE):
        raise ConfigError(f"metrics (--metrics) are served to whoever has the token: set {TOKEN_VARIABLE}")
    return address


def is_url(text: str) -> bool:
    """Return whether a text is the address of something that is served over HTTP.

    >>> is_url("https://[::1]:4318/"), is_url("localhost:4318"), is_url("http://"), is_url("http://localhost:99999")
    (True, False, False, False)
    """
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def keep_token() -> None:
    """Have all processes that this one starts serve pages with one token, so that a page connects to the next one.

    It is in their environment, which only this user and root can read.
    """
    if not os.environ.get(TOKEN_VARIABLE):
        os.environ[TOKEN_VARIABLE] = _new_token()


def _new_token() -> str:
    return secrets.token_urlsafe(24)


def _certificate() -> tuple[str, str] | None:
    certificate, key = (os.environ.get(name, "") for name in (CERTIFICATE_VARIABLE, KEY_VARIABLE))
    if bool(certificate) != bool(key):
        raise ConfigError(f"{CERTIFICATE_VARIABLE} and {KEY_VARIABLE} are files that belong together: set both")
    for path in (certificate, key):
        if path and not os.access(path, os.R_OK):
            raise ConfigError(f"cannot read {path}, which {CERTIFICATE_VARIABLE} or {KEY_VARIABLE} names")
    return (certificate, key) if certificate else None
