"""The peer of a connection: a user of this machine, according to the kernel, or an address."""

from __future__ import annotations

import ipaddress
import socket
import struct
from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

T = TypeVar("T")

UNKNOWN = "this machine"
NETWORK_BITS = 64
"""The part of an IPv6 address that is one peer: it controls all addresses below."""
ANSWER_S = 0.2

_SOCK_DIAG, _BY_FAMILY, _REQUEST, _TCP = 4, 20, 1, 6
_ANY_STATE, _ANY_COOKIE = 0xFFFFFFFF, 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBBI2s2s16s16sIII")
_UID = 16 + 64
"""Its offset in an answer."""


def peer_of(theirs: tuple[str, int], ours: tuple[str, int]) -> str:
    """The peer, from the addresses and ports of both ends: `user 1000`, `192.0.2.7`."""
    address, own = _plain(theirs[0]), _plain(ours[0])
    if address.is_loopback or address == own:
        user = _user((address, theirs[1]), (own, ours[1]))
        return UNKNOWN if user is None else f"user {user}"
    if address.version == 6:
        return str(ipaddress.ip_network((address.packed, NETWORK_BITS), strict=False))
    return str(address)


def oldest_of_the_largest(peers: Mapping[T, str]) -> T:
    """The oldest entry of the peer with the most entries."""
    (most, _), *_ = Counter(peers.values()).most_common(1)
    return next(entry for entry, peer in peers.items() if peer == most)


def _plain(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address; the IPv4 address if it is written as IPv6."""
    parsed = ipaddress.ip_address(address)
    return getattr(parsed, "ipv4_mapped", None) or parsed


_End = tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]


def _user(theirs: _End, ours: _End) -> int | None:
    """The uid of the socket at the other end; None when it is not on this machine, or the kernel
    does not report it.
    """
    family = socket.AF_INET if theirs[0].version == 4 else socket.AF_INET6
    question = _QUESTION.pack(
        family, _TCP, 0, 0, _ANY_STATE,
        theirs[1].to_bytes(2, "big"), ours[1].to_bytes(2, "big"),
        theirs[0].packed, ours[0].packed,
        0, _ANY_COOKIE, _ANY_COOKIE,
    )  # fmt: skip
    header = _HEADER.pack(_HEADER.size + len(question), _BY_FAMILY, _REQUEST, 1, 0)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
            kernel.settimeout(ANSWER_S)
            kernel.send(header + question)
            answer = kernel.recv(1 << 12)
    except OSError:
        return None
    kind = _HEADER.unpack_from(answer)[1]
    if kind != _BY_FAMILY or len(answer) < _UID + 4:
        return None
    return int(struct.unpack_from("=I", answer, _UID)[0])
