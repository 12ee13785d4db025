"""IP addresses of names. A resolver that hangs delays only names that have never been looked up."""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from typing import Any, NamedTuple

from tpusmi.interpreter import WHERE
from tpusmi.text import clean

ADDRESSES_MOST = 4096
"""A headless service has one for each pod."""
KEPT_S = 30.0
"""After that a name is looked up again."""
NAMES_MOST = 8192
LOOKUPS_MOST = 256
"""At one time. The C library gives up on a dead resolver after half a minute."""
FAILURE_KEPT_S = 2.0
RENEWAL_S = 0.2
"""How long a new lookup is waited for while there are addresses of the last one."""


class IpAddress(NamedTuple):
    """An IP address, as a socket takes it."""

    family: int
    host: str
    more: tuple[Any, ...]
    """What follows the port: flow and scope of an IPv6 address."""

    def with_port(self, port: int) -> tuple[Any, ...]:
        """For `connect`."""
        return (self.host, port, *self.more)


class LookupTimeoutError(TimeoutError):
    """The resolver has not answered yet. Its text is a sentence."""


class LookupStartError(OSError):
    """No lookup could be begun, for want of a thread. Its text is a sentence."""


class _Lookup:
    """The lookup of a name, on a thread of its own that ends when the C library does."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.places: tuple[IpAddress, ...] = ()
        self.why = ""
        """Why there are none."""
        self.at_s = time.monotonic()


class NameLookup:
    """Looks names up, each at most once in KEPT_S. Safe to use on several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, _Lookup] = {}
        self._ended: dict[str, _Lookup] = {}

    def places(self, host: str, until_s: float) -> tuple[IpAddress, ...]:
        """Its addresses, at least one, in the order of the system. Those of the last lookup while
        another one does not answer. `until_s` is of time.monotonic(); if it has passed, a lookup is
        begun and not waited for.

        Raises OSError with a sentence, LookupTimeoutError if there is no answer yet.
        """
        if (place := _literal(host)) is not None:
            return (place,)
        with self._lock:
            old = self._ended.get(host)
            kept_s = KEPT_S if old is not None and old.places else FAILURE_KEPT_S
            if old is not None and time.monotonic() - old.at_s < kept_s:
                return _places(host, old)
            lookup = self._running.get(host) or self._begun(host)
        if old is not None and old.places:
            until_s = min(until_s, time.monotonic() + RENEWAL_S)
        if lookup.ended.wait(max(0.0, until_s - time.monotonic())):
            return _places(host, lookup)
        if old is not None and old.places:
            return old.places
        raise LookupTimeoutError(f"the lookup of the name {clean(host, 80)} takes too long")

    def _begun(self, host: str) -> _Lookup:
        if len(self._running) >= LOOKUPS_MOST:
            raise LookupTimeoutError("too many lookups of names get no answer")
        lookup = _Lookup()
        self._running[host] = lookup
        try:
            threading.Thread(
                target=self._look_up, args=(host, lookup), name="tpusmi-lookup", daemon=True
            ).start()
        except RuntimeError:
            del self._running[host]
            raise LookupStartError(f"no thread can be started to look up a name: {WHERE}") from None
        return lookup

    def _look_up(self, host: str, lookup: _Lookup) -> None:
        try:
            rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
            lookup.places = tuple(
                IpAddress(family, str(address[0]), tuple(address[2:]))
                for family, _, _, _, address in rows[:ADDRESSES_MOST]
            )
        except socket.gaierror as error:
            lookup.why = (error.strerror or "unknown").lower()
            if error.errno == socket.EAI_AGAIN and (old := self._ended.get(host)) is not None:
                lookup.places = old.places
        except UnicodeError:
            lookup.why = "no host can have it"
        except Exception as error:  # noqa: BLE001  # without memory: else it would run forever
            lookup.why = str(error) or type(error).__name__
        lookup.at_s = time.monotonic()
        with self._lock:
            self._running.pop(host, None)
            self._ended.pop(host, None)
            self._ended[host] = lookup
            if len(self._ended) > NAMES_MOST:
                del self._ended[next(iter(self._ended))]
        lookup.ended.set()


LOOKUP = NameLookup()
"""All of this process use it."""


def _literal(host: str) -> IpAddress | None:
    """The address that the text is; None for a name, and for one with a scope."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if address.version == 4:
        return IpAddress(socket.AF_INET, str(address), ())
    return None if "%" in host else IpAddress(socket.AF_INET6, str(address), (0, 0))


def _places(host: str, lookup: _Lookup) -> tuple[IpAddress, ...]:
    if not lookup.places:
        raise OSError(
            f"the name {clean(host, 80)} cannot be looked up: {lookup.why or 'it has no address'}"
        )
    return lookup.places
