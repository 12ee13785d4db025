"""The web configuration file of Prometheus and its exporters: a certificate, and who may ask.

https://prometheus.io/docs/prometheus/latest/configuration/https/. Anything in it that this server
does not do is refused: it may be what keeps others out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tpusmi import configuration_file
from tpusmi.configuration_file import (
    ConfigurationError,
    load,
    mapping,
    no_password,
    set_versions,
    tls_library,
    word,
)
from tpusmi.configuration_file import path as beside

if TYPE_CHECKING:
    import ssl

COST_MOST = 16
"""The cost of a bcrypt hash: each step takes twice the time, and 16 takes seconds."""
_HASH = re.compile(r"\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}")
_CLIENT_AUTH = {
    "NoClientCert": "CERT_NONE",
    "VerifyClientCertIfGiven": "CERT_OPTIONAL",
    "RequireAndVerifyClientCert": "CERT_REQUIRED",
}
"""What ssl.VerifyMode calls them."""


class WebConfig(NamedTuple):
    """What the file says."""

    context: ssl.SSLContext | None
    """None without `tls_server_config`."""
    users: Mapping[str, str]
    """bcrypt hashes by user; empty where no password is needed."""
    files: tuple[str, ...]
    """The file itself, and those that it names."""


def read_web_config(path: str) -> WebConfig:
    """The configuration. Raises ConfigurationError."""
    try:
        return _of_file(path, configuration_file.value_of(path))
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from None


def _of_file(path: str, value: Any) -> WebConfig:
    keys = ("tls_server_config", "http_server_config", "basic_auth_users")
    whole = mapping("it", {} if value is None else value, keys)
    mapping("http_server_config", whole.get("http_server_config") or {}, ("http2",))
    tls = whole.get("tls_server_config")
    context, files = (None, ()) if tls is None else _tls(os.path.dirname(path), tls)
    users = _users(whole.get("basic_auth_users") or {})
    return WebConfig(context=context, users=users, files=(path, *files))


def _tls(directory: str, value: Any) -> tuple[ssl.SSLContext, tuple[str, ...]]:
    """The context, and the files that it was made of, which are beside the configuration unless
    their paths are absolute.
    """
    keys = (
        "cert_file", "key_file", "client_ca_file", "client_auth_type", "min_version", "max_version",
    )  # fmt: skip
    tls = mapping("tls_server_config", value, keys)
    cert, key, ca = (beside(directory, tls, name) for name in keys[:3])
    if cert is None or key is None:
        raise ConfigurationError("tls_server_config needs cert_file and key_file")
    library = tls_library()
    context: ssl.SSLContext = library.SSLContext(library.PROTOCOL_TLS_SERVER)
    set_versions(context, tls)
    own = f"{cert} and {key}"
    load(own, lambda: context.load_cert_chain(cert, key, password=no_password), cert, key)
    if ca is not None:
        load(ca, lambda: context.load_verify_locations(ca), ca)
    usual = "NoClientCert" if ca is None else "RequireAndVerifyClientCert"
    context.verify_mode = library.VerifyMode[word(tls, "client_auth_type", _CLIENT_AUTH, usual)]
    if context.verify_mode != library.CERT_NONE and ca is None:
        raise ConfigurationError("client_auth_type needs client_ca_file")
    return context, tuple(path for path in (cert, key, ca) if path is not None)


def _users(value: Any) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise ConfigurationError("basic_auth_users must be a mapping of users to bcrypt hashes")
    for user, hashed in value.items():
        match = _HASH.fullmatch(hashed) if isinstance(hashed, str) else None
        if not isinstance(user, str) or not user or ":" in user:
            raise ConfigurationError("a user must be a name without a colon")
        if match is None:
            raise ConfigurationError(f"the password of {user[:60]!r} is not a bcrypt hash ($2y$…)")
        if int(match[1]) > COST_MOST:
            raise ConfigurationError(f"the hash of {user[:60]!r} costs more than {COST_MOST}")
    return value
