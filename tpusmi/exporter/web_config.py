"""The web configuration file of Prometheus and its exporters: a certificate, and who may ask.

https://prometheus.io/docs/prometheus/latest/configuration/https/. Anything in it that this server
does not do is refused: it may be what keeps others out.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

FILE_BYTES = 64 * 1024
COST_MOST = 16
"""The cost of a bcrypt hash: each step takes twice the time, and 16 takes seconds."""
_HASH = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}")
_CLIENT_AUTH = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}


class WebConfigError(ValueError):
    """What is wrong with the file, in a sentence without any of its secrets."""


class WebConfig(NamedTuple):
    """What the file says."""

    context: ssl.SSLContext | None
    """None without `tls_server_config`."""
    users: Mapping[str, str]
    """bcrypt hashes by user; empty where no password is needed."""
    files: tuple[str, ...]
    """The file itself, and those that it names."""


def read_web_config(path: str) -> WebConfig:
    """The configuration. Raises WebConfigError."""
    try:
        with open(path, "rb") as file:
            data = file.read(FILE_BYTES + 1)
    except OSError as error:
        raise WebConfigError(f"{path} cannot be read: {error.strerror}") from None
    if len(data) > FILE_BYTES:
        raise WebConfigError(f"{path} is longer than {FILE_BYTES} bytes")
    try:
        return _of_file(path, _parsed(data))
    except WebConfigError as error:
        raise WebConfigError(f"{path}: {error}") from None


def _parsed(data: bytes) -> Any:
    import yaml

    try:
        return yaml.safe_load(data)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # Not the error's own text: it quotes the file.
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f" in line {line + 1}"
        raise WebConfigError(f"is not YAML{where}") from None


def _of_file(path: str, value: Any) -> WebConfig:
    keys = ("tls_server_config", "http_server_config", "basic_auth_users")
    whole = _mapping("it", {} if value is None else value, keys)
    _mapping("http_server_config", whole.get("http_server_config") or {}, ("http2",))
    tls = whole.get("tls_server_config")
    context, files = (None, ()) if tls is None else _tls(os.path.dirname(path), tls)
    users = _users(whole.get("basic_auth_users") or {})
    return WebConfig(context=context, users=users, files=(path, *files))


def _mapping(name: str, value: Any, keys: Sequence[str]) -> Mapping[str, Any]:
    """The value, which must be a mapping with no other keys."""
    if not isinstance(value, dict):
        raise WebConfigError(f"{name} must be a mapping")
    for key in value:
        if key not in keys:
            raise WebConfigError(f"{str(key)[:60]!r} is not a key that tpusmi supports")
    return value


def _tls(directory: str, value: Any) -> tuple[ssl.SSLContext, tuple[str, ...]]:
    """The context, and the files that it was made of, which are beside the configuration unless
    their paths are absolute.
    """
    keys = (
        "cert_file", "key_file", "client_ca_file", "client_auth_type", "min_version", "max_version",
    )  # fmt: skip
    tls = _mapping("tls_server_config", value, keys)
    cert, key, ca = (_path(directory, tls, name) for name in keys[:3])
    if cert is None or key is None:
        raise WebConfigError("tls_server_config needs cert_file and key_file")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = _word(tls, "min_version", _VERSIONS, "TLS12")
    if "max_version" in tls:
        context.maximum_version = _word(tls, "max_version", _VERSIONS, "TLS13")
    _load(f"{cert} and {key}", lambda: context.load_cert_chain(cert, key, password=_no_password))
    if ca is not None:
        _load(ca, lambda: context.load_verify_locations(ca))
    usual = "NoClientCert" if ca is None else "RequireAndVerifyClientCert"
    context.verify_mode = _word(tls, "client_auth_type", _CLIENT_AUTH, usual)
    if context.verify_mode != ssl.CERT_NONE and ca is None:
        raise WebConfigError("client_auth_type needs client_ca_file")
    return context, tuple(path for path in (cert, key, ca) if path is not None)


def _path(directory: str, tls: Mapping[str, Any], name: str) -> str | None:
    value = tls.get(name)
    if not value:
        return None
    if not isinstance(value, str):
        raise WebConfigError(f"{name} must be a path")
    return os.path.join(directory, value)


def _word(tls: Mapping[str, Any], name: str, words: Mapping[str, Any], usual: str) -> Any:
    word = tls.get(name) or usual
    if not isinstance(word, str) or word not in words:
        raise WebConfigError(f"{name} must be one of {', '.join(words)}")
    return words[word]


def _load(what: str, load: Callable[[], object]) -> None:
    try:
        load()
    except ssl.SSLError as error:
        why = (error.reason or "not what is expected there").replace("_", " ").lower()
        raise WebConfigError(f"{what} cannot be used: {why}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not what is expected there"
        raise WebConfigError(f"{what} cannot be used: {why}") from None


def _no_password() -> str:
    """OpenSSL would ask for one on the terminal."""
    raise ValueError


def _users(value: Any) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise WebConfigError("basic_auth_users must be a mapping of users to bcrypt hashes")
    for user, hashed in value.items():
        match = _HASH.fullmatch(hashed) if isinstance(hashed, str) else None
        if not isinstance(user, str) or not user or ":" in user:
            raise WebConfigError("a user must be a name without a colon")
        if match is None:
            raise WebConfigError(f"the password of {user[:60]!r} is not a bcrypt hash ($2y$…)")
        if int(match[1]) > COST_MOST:
            raise WebConfigError(f"the hash of {user[:60]!r} costs more than {COST_MOST}")
    return value
