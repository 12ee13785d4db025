"""Why a profiler service gave no trace, in sentences that say what to do."""

from __future__ import annotations

from tpusmi.profiler.old_servers import NOWHERE
from tpusmi.profiler.remote_addresses import Address
from tpusmi.profiler.remote_connection import Fault, StreamError
from tpusmi.profiler.remote_stream import CallEnd
from tpusmi.sources.libtpu.grpc_status import Code
from tpusmi.sources.libtpu.ports import USUAL
from tpusmi.text import clean
from tpusmi.trace.limits import MIB, size_words
from tpusmi.trace.troubles import CaptureError, Trouble

_START = (
    "jax.profiler.start_server({port}) in the job starts one,"
    " and so does tpusmi.start(profiler_port={port})"
)
_FOREIGN = {
    Fault.SILENT: "accepts connections but does not respond",
    Fault.LATE: "stops responding",
    Fault.HTTP1: "is a web server, not a profiler service",
    Fault.TLS: "speaks TLS, which profiler services do not",
    Fault.NOT_GRPC: "does not speak gRPC, so it is not a profiler service",
    Fault.ENDLESS: "sends without end, so it is not a profiler service",
    Fault.CLOSED: "closes the connection at once: a tunnel to a job that has ended does that",
}


def not_connected(address: Address, error: StreamError, waited_s: float) -> CaptureError:
    """Why there is no connection."""
    sentences = {
        Fault.UNKNOWN_HOST: f"No host has the name {address.host}",
        Fault.REFUSED: f"Nothing listens on {address}. {_START.format(port=address.port)}",
        Fault.NO_ROUTE: f"{address.host} cannot be reached from here: {clean(error.details, 80)}",
        Fault.SILENT: f"{address} has not answered for {waited_s:.0f} s:"
        " the host is down, or a firewall is in between",
        Fault.SYSTEM: f"Cannot connect to {address}: {clean(error.details, 80)}",
    }
    return CaptureError(Trouble.ABSENT, sentences[error.fault])


def not_looked_up(address: Address, waited_s: float) -> CaptureError:
    """The name service does not answer."""
    sentence = f"The name {address.host} could not be looked up within {waited_s:.0f} s"
    return CaptureError(Trouble.ABSENT, sentence)


def not_a_profiler(address: Address, error: StreamError) -> CaptureError:
    """A server that does not answer as one."""
    words = _FOREIGN.get(error.fault, clean(error.details, 80))
    return CaptureError(Trouble.ABSENT, f"{address} {words}")


def another_service(address: Address, end: CallEnd) -> CaptureError:
    """A gRPC server that has no profiler, or does not let us ask it."""
    if end.status == Code.UNIMPLEMENTED.value:
        hint = "libtpu reports metrics there. " if address.port in USUAL else ""
        start = _START.format(port=9012)
        sentence = f"{address} answers gRPC, but is not a profiler service. {hint}{start}"
        return CaptureError(Trouble.ABSENT, sentence)
    denied = (Code.PERMISSION_DENIED.value, Code.UNAUTHENTICATED.value)
    trouble = Trouble.DENIED if end.status in denied else Trouble.ABSENT
    return CaptureError(trouble, f"{address} refuses: {_reason(end)}")


def another_process(address: Address, pid: int, owner: int | None) -> CaptureError:
    """The port is that of another job, in another network, or the kernel does not show whose."""
    if owner is None:
        sentence = (
            f"the kernel does not show whether process {pid} has port {address.port}, as it says:"
            f" `tpusmi profile :{address.port}` captures the process that has it"
        )
        return CaptureError(Trouble.ABSENT, sentence)
    sentence = (
        f"port {address.port}, which process {pid} names as its own, is that of process {owner}"
    )
    return CaptureError(Trouble.DENIED, sentence)


def failed(address: Address, end: CallEnd) -> CaptureError:
    """The profiler's own reason."""
    words = end.details.lower()
    is_busy = end.status == Code.ALREADY_EXISTS.value or ("another" in words and "profil" in words)
    if is_busy:
        sentence = f"Another capture of the job at {address} is running. Try again after it"
        return CaptureError(Trouble.BUSY, sentence)
    if NOWHERE in end.details:
        return too_old(address)
    if end.status == Code.CANCELLED.value:
        return CaptureError(Trouble.FAILED, f"The profiler at {address} cancelled the capture")
    return CaptureError(Trouble.FAILED, f"The profiler at {address} failed: {_reason(end)}")


def interrupted(address: Address, error: StreamError, deadline_s: float) -> CaptureError:
    """The connection did not last until the trace was here."""
    words = {
        Fault.CLOSED: "closed the connection during the capture: the job may have ended",
        Fault.LATE: f"did not hand over the trace within {deadline_s:g} s of its end."
        " Capture for a shorter time, or wait longer (--timeout)",
        Fault.ENDLESS: "sends without end, so it is not a profiler service",
    }
    details = words.get(error.fault, f"sends something other than a trace ({error.fault.value})")
    return CaptureError(Trouble.FAILED, f"{address} {details}")


def senseless(address: Address, words: str) -> CaptureError:
    """An answer that is not a trace."""
    return CaptureError(Trouble.FAILED, f"{address} {words}")


def too_large(address: Address, size: int, most: int) -> CaptureError:
    """More than was allowed for."""
    sentence = (
        f"The trace of {address} has {size / MIB:,.0f} MiB, and the limit is {most / MIB:,.0f} MiB."
        " Capture for a shorter time"
    )
    return CaptureError(Trouble.FAILED, sentence)


def no_room(folder: str, size: int) -> CaptureError:
    """The disk keeps half of its free space."""
    sentence = f"A trace of {size_words(size)} would take most of the free space of {folder}"
    return CaptureError(Trouble.FAILED, sentence)


def not_written(folder: str, error: OSError) -> CaptureError:
    """The disk is full, or the like."""
    why = error.strerror or str(error)
    return CaptureError(Trouble.FAILED, f"Cannot write the trace to {folder}: {why}")


def empty(address: Address, is_old: bool) -> CaptureError:
    """The trace has no events."""
    why = (
        "its jaxlib is older than 0.9, so only devices were recorded, and they did nothing"
        if is_old
        else "the job did nothing in that time"
    )
    return CaptureError(Trouble.FAILED, f"The trace of {address} is empty: {why}")


def too_old(address: Address) -> CaptureError:
    """The server does not send the trace, and writes it on a host that is not ours."""
    sentence = (
        f"The jaxlib of the job at {address} is too old to send a trace (before 0.7)."
        " Run tpusmi on its host, as its user"
    )
    return CaptureError(Trouble.FAILED, sentence)


ONLY_DEVICES = (
    "Host events are missing: recording them over gRPC can stop a job for good with jaxlib before"
    " 0.9. With tpusmi.start() in the job, its agent records them without that danger"
)


def shared(address: Address, pid: int) -> str:
    """The port does not say which job was captured."""
    return (
        f"Several processes listen on port {address.port}, and the kernel chose {pid}."
        " Start their profilers on different ports"
    )


def late(address: Address, seconds: float) -> str:
    """A host that took long to connect is compared with the others."""
    return f"The capture of {address} began {seconds:.1f} s after the first one: it answered late"


def no_thread(address: Address) -> CaptureError:
    """A limit of the user, or of the container."""
    return CaptureError(Trouble.FAILED, f"No thread can be started to capture {address}")


def _reason(end: CallEnd) -> str:
    names = Code._value2member_map_
    name = names[end.status].name if end.status in names else "no status"
    details = clean(end.details, 200)
    return f"{details} ({name})" if details else name
