"""The metrics service's messages: built without the global pool, the same by either way."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

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


def test_the_file_is_one_that_protobuf_itself_reads_and_builds() -> None:
    file = descriptor_pb2.FileDescriptorProto.FromString(metricproto._file())
    assert file.syntax == "proto3"
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    for name, ours in metricproto.messages().items():
        public = message_factory.GetMessageClass(
            pool.FindMessageTypeByName(f"{metricproto.PACKAGE}.{name}")
        )
        fields = [(f.name, f.number, f.type) for f in public.DESCRIPTOR.fields]
        assert fields == [(f.name, f.number, f.type) for f in ours.DESCRIPTOR.fields]


def test_fields_with_presence_tell_zero_from_absent() -> None:
    state = metricproto.messages()["CurrentCoreStateSummary"]()
    assert not state.HasField("launch_id")
    state.launch_id = 0
    assert state.HasField("launch_id")


def test_a_protobuf_without_the_c_core_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google._upb", None)
    classes = metricproto.messages.__wrapped__()
    assert classes["MetricRequest"](metric_name="x").SerializeToString() == b"\n\x01x"


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("upb", "fine"),
        ("python", "fine"),
        ("cpp", "has no implementation 'cpp': unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"),
        ("", "has no implementation '': unset PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"),
    ],
)
def test_a_choice_of_implementation_never_crashes_the_process(chosen: str, said: str) -> None:
    """Its C core does, where another one was chosen; and the job may have chosen it."""
    code = (
        "from tpusmi import metricproto\n"
        "try: print('fine', metricproto.messages()['MetricRequest'](metric_name='x'))\n"
        "except metricproto.UnusableProtobufError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": chosen},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert said in done.stdout


def test_nothing_is_put_into_the_pool_of_the_process() -> None:
    code = (
        "from tpusmi import metricproto\n"
        "metricproto.messages()\n"
        "from google.protobuf import descriptor_pool\n"
        "try: descriptor_pool.Default().FindFileByName('tpusmi/tpu_metric_service.proto')\n"
        "except KeyError: print('clean')\n"
        "import tpu_info.proto.tpu_metric_service_pb2\n"
        "print('beside tpu-info')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split("\n")[:2] == ["clean", "beside tpu-info"], done.stderr


SLOW_IMPORT = """
import importlib.abc, importlib.machinery, sys, threading, time
from tpusmi import metricproto

NAME = "google.protobuf.internal.api_implementation"
is_half_there = threading.Event()

class Slow(importlib.machinery.SourceFileLoader):
    def exec_module(self, module):
        is_half_there.set()
        time.sleep(0.5)
        super().exec_module(module)

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != NAME:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        spec.loader = Slow(name, spec.origin)
        return spec

sys.meta_path.insert(0, Finder())
threading.Thread(target=__import__, args=(NAME,)).start()
assert is_half_there.wait(50)
print("MetricRequest" in metricproto.messages())
"""


def test_a_thread_that_still_imports_protobuf_is_waited_for() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SLOW_IMPORT], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
