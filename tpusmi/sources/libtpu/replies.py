"""What a metrics server answered, or why it did not."""

from typing import NamedTuple

from tpusmi.model import Core, Latency, Reading, Status
from tpusmi.sources.libtpu.ports import Endpoint


class ServerReply(NamedTuple):
    """What a server reported last, or why it reported nothing."""

    status: Status
    """ABSENT: nothing listens. FAILED: a process listens, and `message` says what is wrong."""
    message: str = ""
    is_service: bool = True
    """False when what answers is not libtpu."""
    readings: tuple[Reading, ...] = ()
    latencies: tuple[Latency, ...] = ()
    cores: tuple[Core, ...] = ()
    ids: tuple[int, ...] = ()
    """Every device id that the server has reported since we first met it."""
    notes: tuple[str, ...] = ()
    lacks_package: bool = False
    """True where a port listens, and no protobuf is installed here to ask it with."""


class EndpointReply(NamedTuple):
    """An endpoint and the newest reply of the server there."""

    endpoint: Endpoint
    reply: ServerReply
