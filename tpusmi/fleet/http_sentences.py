"""Why a server gave no answer, in sentences without credentials."""

from __future__ import annotations

import errno
import http.client
import ssl
import zlib

from tpusmi.text import clean

REDIRECTS = (301, 302, 303, 307, 308)


def refusal(response: http.client.HTTPResponse) -> str:
    """A sentence about a status other than 200."""
    status = response.status
    if status in REDIRECTS:
        to = (response.getheader("Location") or "").partition("?")[0].partition("#")[0]
        to = clean(to.rpartition("@")[2], 100)
        return f"it redirects to {to or 'another address'}, which is not followed"
    if status == 401:
        return "it wants a password: see --http-config"
    if status == 403:
        return "it refuses the request (403)"
    reason = clean(response.reason or "", 60)
    return f"it answers with status {status}{f' ({reason})' if reason else ''}"


def sentence(error: Exception) -> str:
    """Why there is no answer."""
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, ssl.SSLCertVerificationError):
        return _of_certificate(error)
    if isinstance(error, ssl.SSLError):
        return f"TLS fails: {clean(_ssl_reason(error), 120)}"
    if isinstance(error, (http.client.HTTPException, ValueError, zlib.error)):
        return "it does not speak HTTP, or breaks off its answer"
    if isinstance(error, OSError):
        return _of_connection(error)
    return clean(str(error), 200)


def _of_certificate(error: ssl.SSLCertVerificationError) -> str:
    why = clean(error.verify_message, 120)
    if error.verify_code in (18, 19, 20, 21):
        return f"its certificate is of an unknown authority ({why}): see ca_file in --http-config"
    return f"its certificate is not valid: {why}"


def _ssl_reason(error: ssl.SSLError) -> str:
    reason = (error.reason or "").lower().replace("_", " ")
    if reason in ("wrong version number", "http request", "record layer failure"):
        return f"{reason}; does it speak http:// only?"
    return reason or "the connection was closed"


def _of_connection(error: OSError) -> str:
    words = {
        errno.ECONNREFUSED: "nothing listens there (connection refused)",
        errno.ECONNRESET: "it closed the connection",
        errno.EPIPE: "it closed the connection",
        errno.EHOSTUNREACH: "the host cannot be reached",
        errno.ENETUNREACH: "its network cannot be reached",
        errno.EMFILE: "too many files are open in this process",
    }
    if error.errno in words:
        return words[error.errno]
    return clean(error.strerror or str(error) or type(error).__name__, 200)
