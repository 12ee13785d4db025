"""Why a server gave no answer, in sentences without credentials."""

from __future__ import annotations

import errno
import http.client
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from tpusmi.fleet.http.name_lookup import LookupTimeoutError
from tpusmi.text import clean

if TYPE_CHECKING:
    import ssl

REDIRECTS = (301, 302, 303, 307, 308)


def refusal(
    response: http.client.HTTPResponse, with_credentials: bool, hide: Callable[[str], str]
) -> str:
    """A sentence about a status other than 200, after a request with credentials or without. `hide`
    takes secrets out of a text.
    """
    status = response.status
    if status in REDIRECTS:
        to = hide(response.getheader("Location") or "").partition("?")[0].partition("#")[0]
        to = clean(to.rpartition("@")[2], 100)
        return f"it redirects to {to or 'another address'}, which is not followed"
    if status == 401 and with_credentials:
        return "it does not accept the credentials of --http-config"
    if status == 401:
        return "it wants a password: see --http-config"
    if status == 403:
        return "it refuses the request (403)"
    reason = clean(hide(response.reason or ""), 60)
    return f"it answers with status {status}{f' ({reason})' if reason else ''}"


def sentence(error: Exception, is_tls: bool) -> str:
    """Why there is no answer."""
    if isinstance(error, TimeoutError):
        is_lookup = isinstance(error, LookupTimeoutError)
        return str(error) if is_lookup else "it does not answer in time"
    if of_tls := _of_tls(error):
        return of_tls
    hint = "" if is_tls else "; does it speak https:// only?"
    if isinstance(error, ConnectionResetError):  # http.client's RemoteDisconnected is one
        return f"it closes the connection without an answer{hint}"
    if isinstance(error, http.client.BadStatusLine):
        return f"it does not speak HTTP{hint}"
    if isinstance(error, (http.client.HTTPException, ValueError, zlib.error)):
        return "its answer is broken off, or not HTTP"
    return _of_connection(error)


def _of_tls(error: Exception) -> str:
    """Why TLS fails; empty for another error."""
    try:
        import ssl
    except ImportError:
        return ""
    if not isinstance(error, ssl.SSLError):
        return ""
    if not isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS fails: {clean(_ssl_reason(error), 120)}"
    why = clean(error.verify_message, 120)
    if error.verify_code in (18, 19, 20, 21):
        return f"its certificate is from an unknown authority ({why}): see ca_file in --http-config"
    return f"its certificate is not valid: {why}"


def _ssl_reason(error: ssl.SSLError) -> str:
    reason = (error.reason or "").lower().replace("_", " ")
    if reason in ("wrong version number", "http request", "record layer failure"):
        return f"{reason}; does it speak http:// only?"
    return reason or "the connection was closed"


def _of_connection(error: Exception) -> str:
    words = {
        errno.ECONNREFUSED: "nothing listens there (connection refused)",
        errno.EPIPE: "it closed the connection",
        errno.EHOSTUNREACH: "the host cannot be reached",
        errno.ENETUNREACH: "its network cannot be reached",
        errno.EMFILE: "too many files are open in this process: see ulimit -n",
        errno.ENFILE: "too many files are open on this machine",
        errno.ENOMEM: "no memory is left here",
        errno.ENOBUFS: "no memory is left here",
    }
    number = getattr(error, "errno", None)
    if number in words:
        return words[number]
    return clean(getattr(error, "strerror", None) or str(error) or type(error).__name__, 200)
