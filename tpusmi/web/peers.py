"""Whose a connection is: a user of this machine, as the kernel says, or an address elsewhere."""

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
"""Of an address of IPv6: whoever has one has all below it."""
ANSWER_S = 0.2

_SOCK_DIAG, _BY_FAMILY, _REQUEST, _TCP = 4, 20, 1, 6
_ANY_STATE, _ANY_COOKIE = 0xFFFFFFFF, 0xFFFFFFFF
_HEADER = struct.Struct("=IHHII")
_QUESTION = struct.Struct("=BBBBI2s2s16s16sIII")
_UID = 16 + 64
"""Where it stands in an answer."""


def peer_of(theirs: tuple[str, int], ours: tuple[str, int]) -> str:
    """Who is at the other end, of the addresses and ports of both ends: `user 1000`,
    `192.0.2.7`.
    """
    address, own = _plain(theirs[0]), _plain(ours[0])
    if address.is_loopback or address == own:
        user = _user((address, theirs[1]), (own, ours[1]))
        return UNKNOWN if user is None else f"user {user}"
    if address.version == 6:
        return str(ipaddress.ip_network((address.packed, NETWORK_BITS), strict=False))
    return str(address)


def first_of_the_most(peers: Mapping[T, str]) -> T:
    """The oldest entry of the peer that has the most of them."""
    (most, _), *_ = Counter(peers.values()).most_common(1)
    return next(entry for entry, peer in peers.items() if peer == most)


def _plain(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The address; that of IPv4 where it is written as one of IPv6."""
    found = ipaddress.ip_address(address)
    return getattr(found, "ipv4_mapped", None) or found


_End = tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]


def _user(theirs: _End, ours: _End) -> int | None:
    """The uid of the socket at the other end; None when it is not on this machine, or the kernel
    does not tell.
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
