"""What the commands that serve something share: their port, and why they cannot listen on it."""

from __future__ import annotations

import argparse
import errno
import os
import socket

from tpusmi.cli.exits import Exit, talk
from tpusmi.text import clean


def port(text: str) -> int:
    """The port in an option; 0 is a free one. Raises argparse.ArgumentTypeError."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text} is not a port")
    return int(text)


def address(text: str) -> str:
    """The address or name in an option, an IPv6 address without its brackets. Raises
    argparse.ArgumentTypeError, also for an empty one: a shell's variable that is not set must not
    open the server to the network.
    """
    name = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if name.strip() in ("", "*"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not an address: 0.0.0.0 is all of this machine's, :: all of IPv6"
        )
    try:
        name.encode("idna")  # as Python does to look it up
    except UnicodeError:
        raise argparse.ArgumentTypeError(f"{clean(text, 80)} is not an address") from None
    return name


def shown_at(host: str, port: int) -> str:
    """`tpu-vm-0:8781`: where others reach what listens there, with brackets around IPv6."""
    name = socket.gethostname() if host in ("0.0.0.0", "::") else host
    return f"[{name}]:{port}" if ":" in name else f"{name}:{port}"


def cannot_listen(host: str, port: int, error: OSError) -> Exit:
    """The exit code, after a sentence on stderr."""
    where = f"{host}, port {port}"
    if error.errno == errno.EADDRINUSE:
        return refuse(f"{where} is in use: choose another --port", Exit.BUSY)
    # A resolver's errors have numbers below 0, and asyncio's own have none.
    number = error.errno or 0
    why = os.strerror(number) if number > 0 else error.strerror or str(error)
    denied = isinstance(error, PermissionError)
    return refuse(f"cannot listen on {where}: {why}", Exit.PERMISSION if denied else Exit.USAGE)


def refuse(why: str, code: Exit) -> Exit:
    """The exit code, after that sentence on stderr."""
    talk(why)
    return code
