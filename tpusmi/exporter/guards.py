"""Who gets an answer: the certificate and the passwords of the web configuration file."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import os
import secrets
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import TYPE_CHECKING

from tpusmi.configuration_file import ConfigurationError
from tpusmi.exporter.web_config import WebConfig, read_web_config

if TYPE_CHECKING:
    import ssl

LOOK_AGAIN_S = 5.0
"""How often the files are looked at: a certificate is renewed while the server runs."""
HEADER_MOST = 1024
PASSWORD_BYTES = 72
"""The rest of a longer one does not count for bcrypt."""
RIGHT_MOST = 100
CHECKS_OF_PEER, CHECKS_MOST = 2, 16
"""Passwords that wait for a check: each takes a tenth of a second of a CPU, right or wrong."""

Answer = HTTPStatus | None


class Guards:
    """The configuration in force. Without a file it lets all clients in."""

    def __init__(self, path: str | None, say: Callable[[str], object]) -> None:
        """Raises ConfigurationError for a file that cannot be used."""
        self._path, self._say = path, say
        self._config = WebConfig(None, {}, ()) if path is None else read_web_config(path)
        self._state = _state(self._config)
        self._looked_at_s = time.monotonic()
        self._key = secrets.token_bytes(32)
        self._right: dict[bytes, None] = {}
        """Digests of names and passwords that were right, the newest last."""
        self._waiting: Counter[str] = Counter()
        self._one_at_a_time = asyncio.Semaphore(1)
        self._thread = ThreadPoolExecutor(1, "tpusmi-password")

    @property
    def has_tls(self) -> bool:
        return self._config.context is not None

    @property
    def has_users(self) -> bool:
        return bool(self._config.users)

    def context(self) -> ssl.SSLContext:
        """For the next handshake, with the newest certificate."""
        self._look_again()
        assert self._config.context is not None
        return self._config.context

    async def refusal(self, header: str | None, peer: str) -> Answer:
        """Why a request with this Authorization gets no answer; None when it gets one."""
        self._look_again()
        if not self._config.users:
            return None
        user, password = _credentials(header)
        if not user:
            return HTTPStatus.UNAUTHORIZED
        hashed = self._config.users.get(user)
        digest = self._digest(user, password, hashed or "")
        if digest in self._right:
            return None
        if self._waiting[peer] >= CHECKS_OF_PEER or self._waiting.total() >= CHECKS_MOST:
            return HTTPStatus.TOO_MANY_REQUESTS
        self._waiting[peer] += 1
        try:
            is_right = await self._check(password, hashed)
        finally:
            self._waiting[peer] -= 1
            self._waiting += Counter()  # forget the peers that wait for nothing
        if not is_right:
            return HTTPStatus.UNAUTHORIZED
        self._remember(digest)
        return None

    async def _check(self, password: bytes, hashed: str | None) -> bool:
        """An unknown user takes as long as a wrong password."""
        like = hashed or next(iter(self._config.users.values()))
        loop = asyncio.get_running_loop()
        async with self._one_at_a_time:
            fits = await loop.run_in_executor(self._thread, _fits, password, like)
        return fits and hashed is not None

    def _remember(self, digest: bytes) -> None:
        while len(self._right) >= RIGHT_MOST:
            del self._right[next(iter(self._right))]
        self._right[digest] = None

    def _digest(self, user: str, password: bytes, hashed: str) -> bytes:
        text = b"\0".join((user.encode("utf-8", "replace"), hashed.encode(), password))
        return hmac.digest(self._key, text, hashlib.sha256)

    def _look_again(self) -> None:
        """Read the files again if they have changed. If they cannot be used, nothing changes."""
        now_s = time.monotonic()
        if self._path is None or now_s - self._looked_at_s < LOOK_AGAIN_S:
            return
        self._looked_at_s = now_s
        if (state := _state(self._config)) == self._state:
            return
        try:
            config = read_web_config(self._path)
        except ConfigurationError as error:
            self._say(f"the old web configuration stays in force: {error}")
            return
        if why := self._why_restart(config):
            self._say(f"the old web configuration stays in force: {why}")
            return
        self._config, self._state = config, state
        self._right.clear()

    def _why_restart(self, config: WebConfig) -> str:
        """Why only a restart can put this configuration in force; empty if it need not."""
        if (config.context is None) != (self._config.context is None):
            return "only a restart turns TLS on or off"
        # A file is empty while it is written, which does not make it open to all clients.
        if self._config.users and not config.users:
            return "only a restart turns passwords off"
        return ""


def _state(config: WebConfig) -> tuple[tuple[int, int, int] | None, ...]:
    return tuple(map(_stat, config.files))


def _stat(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _credentials(header: str | None) -> tuple[str, bytes]:
    """User and password; an empty user where the header has none."""
    scheme, _, encoded = (header or "").partition(" ")
    if scheme.lower() != "basic" or len(encoded) > HEADER_MOST:
        return "", b""
    try:
        user, _, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
        return user.decode("utf-8"), password
    except (binascii.Error, ValueError):
        return "", b""


def _fits(password: bytes, hashed: str) -> bool:
    import bcrypt

    try:
        return bcrypt.checkpw(password[:PASSWORD_BYTES], hashed.encode())
    except ValueError:  # a password with a zero byte
        return False
