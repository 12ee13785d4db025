"""Configuration files in YAML as Prometheus and its exporters have them: read within limits, and
checked. What tpusmi does not support in them is refused: it may be what keeps others out.
"""

from __future__ import annotations

import os
import select
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

FILE_BYTES = 64 * 1024
PIPE_S = 10.0
"""How long a pipe is waited for."""
VERSIONS = {"TLS12": "TLSv1_2", "TLS13": "TLSv1_3"}
"""What ssl.TLSVersion calls them."""


class ConfigurationError(ValueError):
    """What is wrong with a file, in a sentence without any of its secrets."""


def value_of(path: str) -> Any:
    """The whole file as one value. Raises ConfigurationError, without the file's name."""
    import yaml

    try:
        return yaml.safe_load(content(path))
    except ConfigurationError:
        raise
    except Exception as error:  # noqa: BLE001  # PyYAML has others for `!!bool x` and the like
        # Not the error's own text: it quotes the file.
        line = getattr(getattr(error, "problem_mark", None), "line", None)
        where = "" if line is None else f" in line {line + 1}"
        raise ConfigurationError(f"is not YAML{where}") from None


def content(path: str, most: int = FILE_BYTES, within_s: float | None = None) -> bytes:
    """The bytes of a file, or of a pipe such as `<(gpg -d FILE)`, which is waited for: for PIPE_S
    unless `within_s` says otherwise. Raises ConfigurationError, without the file's name.
    """
    try:
        # A pipe without a writer would be waited for.
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(file, "rb", buffering=0):
            data = _read(file, most + 1, PIPE_S if within_s is None else within_s)
            is_pipe = stat.S_ISFIFO(os.fstat(file).st_mode)
    except (OSError, ValueError) as error:
        if isinstance(error, ConfigurationError):
            raise
        why = getattr(error, "strerror", None) or "its name is not one of a file"
        raise ConfigurationError(f"cannot be read: {why}") from None
    if is_pipe and not data:  # it would mean: without a password
        raise ConfigurationError("is a pipe that nothing is written to")
    if len(data) > most:
        raise ConfigurationError(f"is longer than {most} bytes")
    return data


def _read(file: int, most: int, within_s: float) -> bytes:
    until_s = time.monotonic() + within_s
    ready = select.poll()
    ready.register(file, select.POLLIN)
    parts: list[bytes] = []
    while (left := most - sum(map(len, parts))) > 0:
        if not ready.poll(max(0.0, 1000 * (until_s - time.monotonic()))):
            raise ConfigurationError("takes too long to read")
        if not (data := os.read(file, left)):
            break
        parts.append(data)
    return b"".join(parts)


def mapping(name: str, value: Any, keys: Sequence[str]) -> Mapping[str, Any]:
    """The value, which must be a mapping with no other keys."""
    if not isinstance(value, dict):
        raise ConfigurationError(f"{name} must be a mapping")
    for key in value:
        if key not in keys:
            raise ConfigurationError(f"{str(key)[:60]!r} is not a key that tpusmi supports")
    return value


def text(where: Mapping[str, Any], name: str) -> str | None:
    """The text with that key; None without one."""
    value = where.get(name)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} must be a text")
    return value


def path(directory: str, where: Mapping[str, Any], name: str) -> str | None:
    """The path with that key, which is beside the configuration unless it is absolute."""
    value = where.get(name)
    if not value:
        return None
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} must be a path")
    return os.path.join(directory, value)


def flag(where: Mapping[str, Any], name: str, usual: bool) -> bool:
    """True or false, as the key says."""
    value = where.get(name)
    if value is None:
        return usual
    if not isinstance(value, bool):
        raise ConfigurationError(f"{name} must be true or false")
    return value


def word(where: Mapping[str, Any], name: str, words: Mapping[str, Any], usual: str) -> Any:
    """What the word with that key stands for."""
    value = where.get(name) or usual
    if not isinstance(value, str) or value not in words:
        raise ConfigurationError(f"{name} must be one of {', '.join(words)}")
    return words[value]


def tls_library() -> ModuleType:
    """The module ssl. Raises ConfigurationError where Python was built without it."""
    try:
        import ssl
    except ImportError:
        raise ConfigurationError("this Python was built without TLS") from None
    return ssl


def set_versions(context: ssl.SSLContext, tls: Mapping[str, Any]) -> None:
    """The versions of TLS that it accepts: 1.2 and newer unless the file says otherwise."""
    version = tls_library().TLSVersion
    context.minimum_version = version[word(tls, "min_version", VERSIONS, "TLS12")]
    if "max_version" in tls:
        context.maximum_version = version[word(tls, "max_version", VERSIONS, "TLS13")]


def load(what: str, loading: Callable[[], object], *files: str | None) -> None:
    """Have OpenSSL load these files, with a sentence for what goes wrong with what is named."""
    library = tls_library()
    try:
        for file in files:
            # OpenSSL would wait for a pipe, without a limit.
            if file is not None and not stat.S_ISREG(os.stat(file).st_mode):
                raise OSError(0, "not a regular file")
        loading()
    except library.SSLError as error:
        why = (error.reason or "not what is expected there").replace("_", " ").lower()
        raise ConfigurationError(f"{what} cannot be used: {why}") from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "not what is expected there"
        raise ConfigurationError(f"{what} cannot be used: {why}") from None


def no_password() -> str:
    """OpenSSL would ask for one on the terminal."""
    raise ValueError
