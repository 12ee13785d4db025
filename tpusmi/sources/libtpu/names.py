"""What libtpu calls each quantity, over gRPC and in its SDK, and what we call it."""

from enum import Enum
from typing import NamedTuple

from tpusmi.model import DEVICE_METRICS, Number, fresh_for_s, within


class Shape(str, Enum):
    """What the answers for one quantity look like."""

    GAUGE = "gauge"
    """A number per device or chip."""
    ORDINAL = "ordinal"
    """A number per `device_ordinal`."""
    EXECUTION = "execution"
    """A distribution per `device_ordinal`."""
    LATENCY = "latency"
    """A distribution per label."""
    LINKS = "links"
    """The SDK's list of links and their health."""
    THROTTLE = "throttle"
    """The SDK's list of throttle scores."""


GAUGE, ORDINAL, EXECUTION, LATENCY, LINKS, THROTTLE = Shape

OFTEN_S, AGAIN_S, SELDOM_S, ONCE_S = 1.0, 2.0, 5.0, 30.0
"""How often each kind of number is worth asking for."""
VALUE_MOST = 2**62 - 1
IDLE_MOST_S = 10 * 365.25 * 86400.0
"""The longest time idle: no machine has been up for ten years."""
PERCENT_MOST = 100.5
"""The most that a percentage can be: a little over 100 is rounding."""


class Name(NamedTuple):
    """One quantity of libtpu."""

    metric: str
    """The name in model.METRICS, or that of a Latency."""
    grpc: str | None
    """Its name on a metrics server; None where only the SDK has it."""
    sdk: tuple[str, ...]
    """Its names in the SDK, newest first; empty where only the metrics server has it."""
    shape: Shape
    every_s: float = OFTEN_S

    @property
    def fresh_s(self) -> float:
        """How long a value may be believed."""
        return fresh_for_s(self.every_s)


def _latency(metric: str, middle: str, *sdk: str) -> Name:
    grpc = f"megascale.{middle}.cumulative.distribution"
    return Name(metric, grpc, sdk, LATENCY, every_s=SELDOM_S)


NAMES = (
    Name("hbm_limit_bytes", "tpu.runtime.hbm.memory.total.bytes", ("hbm_capacity_total",),
         GAUGE, ONCE_S),
    Name("hbm_used_bytes", "tpu.runtime.hbm.memory.usage.bytes", ("hbm_capacity_usage",), GAUGE),
    Name("duty_cycle_percent", "tpu.runtime.tensorcore.dutycycle.percent", ("duty_cycle_pct",),
         GAUGE),
    Name("hbm_bandwidth_utilization_percent", "tpu.runtime.hbm.utilization.percent",
         ("runtime_hbm_utilization",), GAUGE, AGAIN_S),
    Name("idle_s", "tpu.runtime.tensorcore.idle_duration.seconds", ("idle_duration",),
         GAUGE, AGAIN_S),
    Name("hlo_queue_size", "hlo.queue.size.gauge", ("hlo_queue_size",), ORDINAL, AGAIN_S),
    Name("hlo_execution_time_us", "hlo.execution.timing.distribution.microseconds",
         ("hlo_execution_timing", "hlo_exec_timing"), EXECUTION, SELDOM_S),
    Name("tensorcore_utilization_percent", None, ("tensorcore_util",), GAUGE),
    Name("ici_links", None, ("ici_link_health",), LINKS, SELDOM_S),
    Name("throttle_percent", None, ("tpu_throttle_score",), THROTTLE, SELDOM_S),
    _latency("buffer_transfer_latency_us", "dcn_transfer_latencies.microsecond",
             "buffer_transfer_latency"),
    _latency("inbound_buffer_transfer_latency_us", "dcn_inbound_transfer_latencies.microsecond",
             "inbound_buffer_transfer_latency"),
    _latency("host_to_device_transfer_latency_us", "host_to_device_transfer_latencies.microsecond",
             "host_to_device_transfer_latency"),
    _latency("device_to_host_transfer_latency_us", "device_to_host_transfer_latencies.microsecond",
             "device_to_host_transfer_latency"),
    _latency("collective_e2e_latency_us", "collective_end_to_end_latencies.microsecond",
             "collective_e2e_latency"),
    _latency("host_compute_latency_us", "mxla_compute_latencies.microsecond",
             "host_compute_latency"),
    _latency("tcp_min_rtt_us", "grpc_tcp_min_rtt.microsecond",
             "tcp_min_rtt", "grpc_tcp_min_round_trip_times"),
    _latency("tcp_delivery_rate_mbps", "grpc_tcp_delivery_rate.Mbps",
             "tcp_delivery_rate", "grpc_tcp_delivery_rates"),
    _latency("grpc_client_call_latency_us", "grpc_client_call_latencies.microsecond"),
    _latency("grpc_server_call_latency_us", "grpc_server_call_latencies.microsecond"),
)  # fmt: skip
"""Every quantity, in the order in which they are asked for."""
SDK_ONLY = tuple(n for n in NAMES if n.sdk and n.grpc is None)
SDK_BESIDES = tuple(n for n in NAMES if n.sdk and n.grpc is not None)
"""What the SDK has besides the metrics servers."""

_PERCENTS = frozenset(m.name for m in DEVICE_METRICS if m.unit == "percent")
_INTEGERS = frozenset(m.name for m in DEVICE_METRICS if m.is_integer)


def sane(metric: str, value: Number | None) -> Number | None:
    """The value of that device metric when it can be true; None otherwise."""
    if metric in _PERCENTS:
        value = within(value, PERCENT_MOST)
        return None if value is None else min(float(value), 100.0)
    value = within(value, IDLE_MOST_S if metric == "idle_s" else VALUE_MOST)
    if value is None:
        return None
    return int(value) if metric in _INTEGERS else float(value)
