"""The metrics service's messages: those of the official client, and no package of anybody's."""

from __future__ import annotations

import subprocess
import sys

from tpusmi import metricproto


def test_messages_survive_their_own_bytes() -> None:
    classes = metricproto.messages()
    response = classes["MetricResponse"]()
    row = response.metric.metrics.add()
    row.attribute.value.int_attr = 0
    row.distribution.bucket_options.exponential_buckets.growth_factor = 1.5
    row.distribution.bucket_counts.extend([0, 3, 2**40])
    again = classes["MetricResponse"].FromString(response.SerializeToString())
    assert again.metric.metrics[0].attribute.value.WhichOneof("attr") == "int_attr"
    assert list(again.metric.metrics[0].distribution.bucket_counts) == [0, 3, 2**40]


def test_fields_with_presence_tell_zero_from_absent() -> None:
    state = metricproto.messages()["CurrentCoreStateSummary"]()
    assert not state.HasField("launch_id")
    state.launch_id = 0
    assert state.HasField("launch_id")


def test_no_package_is_loaded_for_them() -> None:
    code = (
        "import sys\n"
        "from tpusmi import metricproto\n"
        "metricproto.messages()\n"
        "print([name for name in sys.modules if name.startswith(('google', 'grpc'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr
