"""Real certificates for 127.0.0.1, made by openssl."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple


class Pair(NamedTuple):
    """A certificate, which is its own authority, and its key."""

    cert: Path
    key: Path


def certificate(directory: Path, name: str = "tls") -> Pair:
    """A new one."""
    pair = Pair(directory / f"{name}.crt", directory / f"{name}.key")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-nodes", "-days", "2", "-subj", f"/CN={name}"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(pair.key), "-out", str(pair.cert)),
        ],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return pair
