"""How to ask a server over HTTP: the file of `--http-config`, in the format that Prometheus has for
it and `promtool --http.config.file` reads.

https://prometheus.io/docs/prometheus/latest/configuration/configuration/#http_config. What tpusmi
does not support is refused, and no secret is in a text that is shown.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tpusmi import configuration_file
from tpusmi.configuration_file import (
    ConfigurationError,
    flag,
    load,
    mapping,
    no_password,
    set_versions,
    text,
    tls_library,
)
from tpusmi.configuration_file import path as beside
from tpusmi.fleet.http.http_identity import HttpHeader, files_with_secrets, headers_of
from tpusmi.fleet.http.http_proxies import Proxies, proxies_of
from tpusmi.text import clean

if TYPE_CHECKING:
    import ssl

_KEYS = (
    "basic_auth", "authorization", "bearer_token", "bearer_token_file", "http_headers",
    "tls_config", "proxy_url", "no_proxy", "proxy_from_environment", "follow_redirects",
    "enable_http2",
)  # fmt: skip
_TLS_KEYS = (
    "ca", "ca_file", "cert_file", "key_file", "server_name", "insecure_skip_verify", "min_version",
    "max_version",
)  # fmt: skip


class HttpTls(NamedTuple):
    """The part `tls_config`."""

    ca: str | None
    """Certificates of authorities, as a text; None for those of the file or of the system."""
    ca_file: str | None
    cert_file: str | None
    key_file: str | None
    server_name: str | None
    is_verified: bool
    versions: Mapping[str, Any]


class HttpConfig:
    """The file's content, on any thread. It has secrets, and so no repr of its own."""

    def __init__(self, tls: HttpTls, headers: tuple[HttpHeader, ...], proxies: Proxies) -> None:
        self._tls = tls
        self._headers = headers
        self.proxies = proxies
        self.warnings: tuple[str, ...] = ()
        """Sentences for the user: other users can read the secrets."""
        self._context: ssl.SSLContext | None = None
        self._files_state: object = None
        self._lock = threading.Lock()

    @property
    def has_secrets(self) -> bool:
        return any(header.is_secret for header in self._headers)

    @property
    def server_name(self) -> str | None:
        """The name that the server's certificate must have; None: that of the address."""
        return self._tls.server_name

    def headers(self) -> list[tuple[str, str]]:
        """The headers of the next request. Raises ConfigurationError for a file of a secret that
        cannot be read.
        """
        return [(header.name, header.value()) for header in self._headers]

    def secrets(self) -> list[str]:
        """The values of those that must not be shown. Raises ConfigurationError."""
        return [header.value() for header in self._headers if header.is_secret]

    def context(self) -> ssl.SSLContext:
        """For the next connection over TLS, with the newest certificates. Raises
        ConfigurationError.
        """
        tls = self._tls
        state = [_state(path) for path in (tls.ca_file, tls.cert_file, tls.key_file)]
        with self._lock:
            if self._context is None or state != self._files_state:
                self._context, self._files_state = _context(tls), state
            return self._context


def read_http_config(path: str | None) -> HttpConfig:
    """The configuration; without a file, that of a client without credentials. Raises
    ConfigurationError.
    """
    if path is None:
        return _of_file("", {})
    try:
        value = configuration_file.value_of(path)
        config = _of_file(path, value)
    except ConfigurationError as error:
        raise ConfigurationError(f"{clean(path, 200)}: {error}") from None
    secret = dict.fromkeys(files_with_secrets(path, value or {}))
    config.warnings = tuple(_warning(clean(one, 200)) for one in secret if _is_open_to_all(one))
    return config


def _of_file(path: str, value: Any) -> HttpConfig:
    whole = mapping("it", {} if value is None else value, _KEYS)
    if flag(whole, "follow_redirects", False):
        raise ConfigurationError("follow_redirects must be false: tpusmi follows none")
    flag(whole, "enable_http2", False)
    directory = os.path.dirname(path)
    tls = _tls(directory, whole.get("tls_config") or {})
    config = HttpConfig(tls, headers_of(directory, whole), proxies_of(whole))
    if whole.get("tls_config"):
        config.context()  # to find out now what is wrong with its files
    return config


def _tls(directory: str, value: Any) -> HttpTls:
    given = mapping("tls_config", value, _TLS_KEYS)
    ca, ca_file, cert, key = (
        text(given, "ca"),
        *(beside(directory, given, name) for name in ("ca_file", "cert_file", "key_file")),
    )
    if ca and ca_file:
        raise ConfigurationError("only one of ca and ca_file can be used")
    if (cert is None) != (key is None):
        raise ConfigurationError("tls_config needs both of cert_file and key_file, or neither")
    return HttpTls(
        ca=ca,
        ca_file=ca_file,
        cert_file=cert,
        key_file=key,
        server_name=text(given, "server_name"),
        is_verified=not flag(given, "insecure_skip_verify", False),
        versions={name: given[name] for name in ("min_version", "max_version") if name in given},
    )


def _context(tls: HttpTls) -> ssl.SSLContext:
    library = tls_library()
    context: ssl.SSLContext = library.SSLContext(library.PROTOCOL_TLS_CLIENT)
    set_versions(context, tls.versions)
    if not tls.is_verified:
        context.check_hostname = False
        context.verify_mode = library.CERT_NONE
    elif tls.ca or tls.ca_file:
        path = tls.ca_file
        load(path or "ca", lambda: context.load_verify_locations(path, None, tls.ca), path)
    else:
        context.load_default_certs()
    cert, key = tls.cert_file, tls.key_file
    if cert is not None:
        own = f"{cert} and {key}"
        load(own, lambda: context.load_cert_chain(cert, key, password=no_password), cert, key)
    return context


def _state(path: str | None) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path or "")
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _is_open_to_all(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & stat.S_IROTH)


def _warning(name: str) -> str:
    return f"all users of this machine can read {name}: chmod 600 {name}"
