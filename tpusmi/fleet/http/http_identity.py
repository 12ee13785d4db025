"""The headers that show a server which user asks: passwords, tokens and headers of the HTTP
configuration. Files with secrets are read again for each request: tokens are renewed.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from tpusmi import configuration_file
from tpusmi.configuration_file import ConfigurationError, mapping, text
from tpusmi.configuration_file import path as beside

SECRET_BYTES = 16 * 1024
_SECRETS = {"basic_auth": "password", "authorization": "credentials"}
"""Parts of the file, each with its key that may have a secret."""
HEADERS_MOST = 32
Secret = Callable[[], str]
"""Gives a secret. Raises ConfigurationError."""


class HttpHeader(NamedTuple):
    """A header of each request."""

    name: str
    value: Secret
    is_secret: bool = True
    """False for what Prometheus also shows to its users: the tenant of Mimir, for one."""


_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
_OURS = {
    "accept", "accept-encoding", "authorization", "connection", "content-encoding",
    "content-length", "content-type", "cookie", "expect", "host", "keep-alive",
    "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade",
}  # fmt: skip
"""Headers that `http_headers` cannot set, in Prometheus too or because they are tpusmi's own."""


def headers_of(directory: str, whole: Mapping[str, Any]) -> tuple[HttpHeader, ...]:
    """Names of headers, and how to get their values. Raises ConfigurationError."""
    ways = [
        name
        for name in ("basic_auth", "authorization", "bearer_token", "bearer_token_file")
        if whole.get(name)
    ]
    if len(ways) > 1:
        raise ConfigurationError(f"only one of {' and '.join(ways)} can be used")
    own = _custom(directory, whole.get("http_headers") or {})
    if not ways:
        return own
    return (HttpHeader("Authorization", _AUTHORIZATIONS[ways[0]](directory, whole)), *own)


def _basic(directory: str, whole: Mapping[str, Any]) -> Secret:
    keys = ("username", "username_file", "password", "password_file")
    given = mapping("basic_auth", whole["basic_auth"], keys)
    user = _secret(directory, given, "username")
    password = _secret(directory, given, "password")

    def header() -> str:
        name = user()
        if ":" in name:
            raise ConfigurationError("username has a colon, which basic_auth cannot send")
        return f"Basic {base64.b64encode(f'{name}:{password()}'.encode()).decode('ascii')}"

    return header


def _authorization(directory: str, whole: Mapping[str, Any]) -> Secret:
    given = mapping(
        "authorization", whole["authorization"], ("type", "credentials", "credentials_file")
    )
    scheme = text(given, "type") or "Bearer"
    if not _NAME.fullmatch(scheme) or scheme.lower() == "basic":
        raise ConfigurationError("type of authorization must be one word, and not Basic")
    return _with_scheme(scheme, _secret(directory, given, "credentials"))


def _bearer_token(directory: str, whole: Mapping[str, Any]) -> Secret:
    return _with_scheme("Bearer", _secret(directory, whole, "bearer_token"))


_AUTHORIZATIONS = {
    "basic_auth": _basic,
    "authorization": _authorization,
    "bearer_token": _bearer_token,
    "bearer_token_file": _bearer_token,
}


def _with_scheme(scheme: str, secret: Secret) -> Secret:
    return lambda: f"{scheme} {secret()}"


def _custom(directory: str, value: Any) -> tuple[HttpHeader, ...]:
    """The headers of `http_headers`."""
    if not isinstance(value, dict) or len(value) > HEADERS_MOST:
        raise ConfigurationError(f"http_headers must be a mapping of up to {HEADERS_MOST} headers")
    return tuple(one for name in value for one in _values(directory, name, value[name]))


def _values(directory: str, name: Any, value: Any) -> list[HttpHeader]:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ConfigurationError("http_headers has a name that cannot be sent")
    if name.lower() in _OURS:
        raise ConfigurationError(f"http_headers cannot set {name}")
    given = mapping(name, value, ("values", "secrets", "files"))
    headers: list[HttpHeader] = []
    for key in given:
        texts = given[key] or []
        if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
            raise ConfigurationError(f"{key} of {name} must be a list of texts")
        for one in texts:
            place = {"file": one} if key == "files" else {}
            path = beside(directory, place, "file")
            secret = _in_text(name, one) if path is None else _in_file(name, path)
            headers.append(HttpHeader(name, secret, key != "values"))
    return headers


def _secret(directory: str, where: Mapping[str, Any], name: str) -> Secret:
    """The secret with that key, or in the file that `NAME_file` names. An empty one is allowed."""
    path, value = beside(directory, where, f"{name}_file"), text(where, name)
    if path is not None and value is not None:
        raise ConfigurationError(f"only one of {name} and {name}_file can be used")
    return _in_text(name, value or "") if path is None else _in_file(name, path)


def _in_text(name: str, value: str) -> Secret:
    secret = _sendable(name, value)
    return lambda: secret


def files_with_secrets(path: str, whole: Mapping[str, Any]) -> Iterator[str]:
    """The file itself if there is a secret in it, and the files with secrets that it names. The
    file must have been read without an error.
    """
    directory = os.path.dirname(path)
    headers = [one or {} for one in (whole.get("http_headers") or {}).values()]
    parts = [(whole, "bearer_token")]
    parts += [(whole.get(part) or {}, key) for part, key in _SECRETS.items()]
    own = [where.get(key) for where, key in parts] + [one.get("secrets") for one in headers]
    if any(own) or "@" in (whole.get("proxy_url") or ""):
        yield path
    named = [where.get(f"{key}_file") for where, key in parts]
    named += [(whole.get("tls_config") or {}).get("key_file")]
    named += [one for header in headers for one in header.get("files") or []]
    yield from (os.path.join(directory, one) for one in named if one)


def _in_file(name: str, path: str) -> Secret:
    def read(within_s: float | None = 0.0) -> str:
        try:
            data = configuration_file.content(path, SECRET_BYTES, within_s)
            return _sendable(name, data.decode("utf-8").strip())
        except UnicodeDecodeError:
            raise ConfigurationError(f"{path}: is not text") from None
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}: {error}") from None

    read(None)
    return read


def _sendable(name: str, value: str) -> str:
    """The text itself. A line break would begin a header of its own."""
    if len(value) > SECRET_BYTES or not all(c >= " " and c != "\x7f" for c in value):
        raise ConfigurationError(f"{name} has characters that cannot be sent")
    return value
