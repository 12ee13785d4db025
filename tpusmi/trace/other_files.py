"""Tells what a file is that is not a trace: one session writes several kinds."""

from __future__ import annotations

import zlib

from tpusmi.trace.messages import NotATraceError, fields
from tpusmi.trace.open_trace import TraceFile

HEAD_BYTES = 4096
_TEXT = bytes(range(0x20, 0x7F)) + b"\t\r\n"
_REPLACED = b"\xef\xbf\xbd"
"""What a text editor or a lossy copy puts in place of bytes that are not text."""


def reason_of(file: TraceFile) -> str | None:
    """What the file is, as the rest of a sentence; None for a file of an unknown kind."""
    head = file.head(HEAD_BYTES)
    if head.startswith(b"\x1f\x8b"):
        return _packed(head)
    if head.count(_REPLACED) > len(head) // 200 + 1:
        return "it was saved as text, which replaced its bytes (UTF-8 mangled)"
    if head.lstrip()[:1] in (b"{", b"["):
        return "it is JSON; tpusmi reads the file that ends in .xplane.pb"
    if _is_pprof(head):
        return "it is a memory profile (pprof)"
    if not head.translate(None, _TEXT):
        return "it is text"
    return None


def _packed(head: bytes) -> str:
    try:
        inside = zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    except zlib.error:
        return "it is gzip'ed, and damaged"
    if inside.lstrip()[:1] in (b"{", b"["):
        return (
            "it is gzip'ed JSON for the trace viewer; tpusmi reads the file that ends in .xplane.pb"
        )
    if _is_pprof(inside):
        return "it is a memory profile (pprof)"
    return "it is gzip'ed; unpack it first"


def _is_pprof(head: bytes) -> bool:
    """True when it begins with the types of its values, which are pairs of numbers."""
    if head[:1] != b"\x0a" or len(head) < 2 or not 1 < head[1] <= 12:
        return False
    try:
        members = [*fields(head[2 : 2 + head[1]])]
    except NotATraceError:
        return False
    return all(number in (1, 2) and isinstance(value, int) for number, _, value in members)
