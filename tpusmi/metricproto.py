"""The messages of libtpu's RuntimeMetricService, and of VBARControl beside it, in our own pool.

They are built at run time: generated modules would put them into the global pool, where a second
copy (tpu-info's, libtpu's) aborts the process. Field numbers are those that libtpu 0.0.42.1
carries in its library.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

PACKAGE = "tpu.monitoring.runtime"
SERVICE = f"{PACKAGE}.RuntimeMetricService"
GET_METRIC = f"/{SERVICE}/GetRuntimeMetric"
LIST_METRICS = f"/{SERVICE}/ListSupportedMetrics"
GET_STATUS = f"/{SERVICE}/GetTpuRuntimeStatus"
GET_HOST_METRICS = "/libtpu.tpunetd.VBARControl/GetHostMetrics"

CORE_TYPES = ("INVALID", "TENSOR_CORE", "SPARSE_CORE_V0", "SPARSE_CORE")
"""TpuCoreTypeProto by number; libtpu knows more, so an unknown number is data, not an error."""

# One message a paragraph: `name number type`, `*` repeated, `?` with presence, `|x` in oneof x.
_SCHEMA = """
Timestamp: seconds 1 int64, nanos 2 int32
MetricRequest: metric_name 1 string, skip_node_aggregation 2 bool
MetricResponse: metric 1 TPUMetric
TPUMetric: name 1 string, description 2 string, metrics 3 *Metric
Metric: attribute 1 Attribute, timestamp 2 Timestamp, gauge 3 Gauge|measure,
  counter 4 Counter|measure, distribution 5 Distribution|measure, summary 6 Summary|measure,
  start_timestamp 7 Timestamp
Attribute: key 1 string, value 2 AttrValue
AttrValue: string_attr 1 string|attr, bool_attr 2 bool|attr, int_attr 3 int64|attr,
  double_attr 4 double|attr, array_attr 5 ArrayAttrValue|attr, kvlist_attr 6 KeyValueList|attr,
  bytes_attr 7 bytes|attr
ArrayAttrValue: attrs 1 *AttrValue
KeyValueList: attributes 1 *Attribute
Gauge: as_double 1 double|value, as_int 2 int64|value, as_string 3 string|value,
  as_bool 4 bool|value
Counter: as_double 1 double|value, as_int 2 uint64|value
Summary: sample_count 1 uint64, sample_sum 2 double, quantile 3 *Quantile
Quantile: quantile 1 double, value 2 double
Distribution: count 1 int64, mean 2 double, min 3 double, max 4 double,
  sum_of_squared_deviation 5 double, bucket_options 6 BucketOptions, bucket_counts 7 *int64
BucketOptions: regular_buckets 1 Regular|options, exponential_buckets 2 Exponential|options,
  explicit_buckets 3 Explicit|options, linear_buckets 4 Linear|options
Regular: num_finite_buckets 1 int32, bounds 2 *Bound
Bound: width 1 double, offset 2 double
Exponential: num_finite_buckets 1 int32, growth_factor 2 double, scale 3 double
Linear: num_finite_buckets 1 int32, width 2 double, offset 3 double
Explicit: bounds 1 *double
ListSupportedMetricsRequest: filter 1 string
ListSupportedMetricsResponse: supported_metric 1 *SupportedMetric
SupportedMetric: metric_name 1 string, unit 2 string, metric_kind 3 int32, value_type 4 int32
GetTpuRuntimeStatusRequest: include_hlo_info 1 bool
GetTpuRuntimeStatusResponse: host_name 1 string, core_states 2 *CoreStateEntry
CoreStateEntry: key 1 int32, value 2 CurrentCoreStateSummary
TpuCoreOnChipProto: type 1 ?int32, index 2 ?int32
TpuCoreIdentifier: global_core_id 1 ?int32, chip_id 2 ?int32, core_on_chip 3 TpuCoreOnChipProto
QueuedProgramInfo: run_id 1 ?int64, launch_id 2 ?int64, program_fingerprint 3 ?bytes
SequencerInfo: sequencer_type 1 ?int32, sequencer_index 2 ?int32, pc 3 ?int64, tag 4 ?int64,
  tracemark 5 ?int64, program_id 6 ?int64, run_id 7 ?int64, hlo_location 8 ?string,
  hlo_detailed_info 9 ?string
CurrentCoreStateSummary: core_id 1 TpuCoreIdentifier, sequencer_info 2 *SequencerInfo,
  xdb_server_running 3 ?bool, program_fingerprint 4 ?bytes, launch_id 5 ?int32,
  queued_program_info 6 *QueuedProgramInfo, error_message 7 ?string
GetHostMetricsResponse: metrics_data 1 *UtilizationMetricData
UtilizationMetricData: timestamp 1 Timestamp, metrics 2 *UtilizationMetric,
  chip_identifier 3 string, health 4 TpuHealthMetrics
UtilizationMetric: metric_type 1 int32, utilization 2 float, usage 3 float, duty_cycle 4 float
TpuHealthMetrics: chip_throttling_metric 1 ChipThrottlingMetric, ici_link_metrics 2 *IciLinkMetric
ChipThrottlingMetric: tray_id 1 int64, chip_id 2 int64, throttling_score 3 int64
IciLinkMetric: port_id 1 string, link_health 2 int64
"""


_TYPES = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5,
    "bool": 8, "string": 9, "message": 11, "bytes": 12,
}  # fmt: skip
"""Numbers of FieldDescriptorProto.Type."""
_OPTIONAL, _REPEATED = 1, 3
LEAST_VERSION = (4, 25)
_CURE = ": install tpusmi into an environment of its own (uv tool, pipx)"
_CHOICE = "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"
_API = "google.protobuf.internal.api_implementation"
_IMPLEMENTATIONS = ("upb", "python")
"""The implementations in versions that are new enough."""


class UnusableProtobufError(Exception):
    """Why the protobuf package of this environment cannot be used, and what to do."""


@lru_cache(maxsize=1)
def messages() -> dict[str, Any]:
    """Every message class by its name. Raises ImportError where protobuf is not installed, and
    UnusableProtobufError where it is too old or broken: it often belongs to the job.
    """
    version = _version()
    chosen = _implementation()
    if chosen not in _IMPLEMENTATIONS:  # its modules would warn on stderr, or crash the process
        why = f"it has no implementation {chosen!r}: unset {_CHOICE}"
        raise UnusableProtobufError(f"protobuf {version} cannot be used: {why}")
    try:
        return _messages()
    except Exception as error:  # a package that is only half there may raise anything
        what = f"{type(error).__name__}: {error}"
        raise UnusableProtobufError(f"protobuf {version} cannot be used ({what}){_CURE}") from error


def _version() -> str:
    """The version of the package, if it is new enough. Checked before its C core is loaded, which
    would crash the process if it were of another version.
    """
    try:
        import google.protobuf
    except ImportError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise UnusableProtobufError(f"protobuf cannot be used ({what}){_CURE}") from error
    version = str(getattr(google.protobuf, "__version__", "of an unknown version"))
    numbers = tuple(int(word) for word in version.split(".")[:2] if word.isdecimal())
    if numbers < LEAST_VERSION:
        least = ".".join(map(str, LEAST_VERSION))
        raise UnusableProtobufError(f"protobuf {version} is too old, {least} is needed{_CURE}")
    return version


def _messages() -> dict[str, Any]:
    pool, class_of = _new_pool()
    names = [paragraph.partition(": ")[0] for paragraph in _paragraphs()]
    pool.AddSerializedFile(_file())
    return {name: class_of(pool.FindMessageTypeByName(f"{PACKAGE}.{name}")) for name in names}


def _new_pool() -> tuple[Any, Callable[[Any], Any]]:
    """An empty pool, and how its descriptors become classes.

    The public modules import all of protobuf's pure Python implementation and throw it away, which
    takes twice as long as bare Python takes to start. They are used where the C core has other
    names, or where another implementation was chosen: the C core would then crash the process.
    """
    try:
        if _implementation() != "upb":
            raise ImportError("another implementation was chosen")
        from google._upb import _message
        from google.protobuf.message import Message

        meta = _message.MessageMeta
    except (ImportError, AttributeError):
        from google.protobuf import descriptor_pool, message_factory

        return descriptor_pool.DescriptorPool(), message_factory.GetMessageClass

    def class_of(descriptor: Any) -> Any:
        members = {"DESCRIPTOR": descriptor, "__module__": __name__}
        return meta(descriptor.name, (Message,), members)

    return _message.DescriptorPool(), class_of


def _implementation() -> str:
    """`upb`, or the one chosen in its place for this process."""
    if _API in sys.modules:
        # Imported again, as another thread may still be at its first import: this waits for it.
        return str(import_module(_API).Type())
    return os.environ.get(_CHOICE, "upb")  # an empty one is a choice as well


def _paragraphs() -> list[str]:
    return _SCHEMA.replace("\n  ", " ").strip().splitlines()


def _file() -> bytes:
    """The schema as a serialized FileDescriptorProto."""
    file = _text(1, "tpusmi/tpu_metric_service.proto") + _text(2, PACKAGE)
    for paragraph in _paragraphs():
        name, _, fields = paragraph.partition(": ")
        file += _part(4, _message(name, fields))
    return file + _text(12, "proto3")


def _message(name: str, fields: str) -> bytes:
    """A DescriptorProto of one paragraph."""
    oneofs: list[str] = []
    message = _text(1, name)
    for text in fields.split(", "):
        message += _part(2, _field(text, oneofs))
    return message + b"".join(_part(8, _text(1, oneof)) for oneof in oneofs)


def _field(text: str, oneofs: list[str]) -> bytes:
    """A FieldDescriptorProto; its oneof is added to those of its message."""
    name, number, kind = text.split(" ")
    kind, _, oneof = kind.partition("|")
    repeated, optional, kind = kind.startswith("*"), kind.startswith("?"), kind.lstrip("*?")
    is_message = kind[0].isupper()
    field = _text(1, name) + _number(3, int(number))
    field += _number(4, _REPEATED if repeated else _OPTIONAL)
    field += _number(5, _TYPES["message" if is_message else kind])
    field += _text(6, f".{PACKAGE}.{kind}") if is_message else b""
    oneof = f"_{name}" if optional else oneof
    if oneof and oneof not in oneofs:
        oneofs.append(oneof)
    field += _number(9, oneofs.index(oneof)) if oneof else b""
    return field + (_number(17, 1) if optional else b"")


def _text(field: int, text: str) -> bytes:
    return _part(field, text.encode())


def _part(field: int, content: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _varint(value: int) -> bytes:
    low = b""
    while value > 0x7F:
        low += bytes((value & 0x7F | 0x80,))
        value >>= 7
    return low + bytes((value,))
