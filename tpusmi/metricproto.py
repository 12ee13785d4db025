"""The messages of libtpu's RuntimeMetricService, and of VBARControl beside it.

Field numbers are those that libtpu 0.0.42.1 carries in its library.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tpusmi.protobuf import classes

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


@lru_cache(maxsize=1)
def messages() -> dict[str, Any]:
    """Every message class by its name."""
    return dict(classes(_SCHEMA))
