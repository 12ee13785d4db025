"""`--metrics-port` and `--only-visible`, and the variables beside them."""

from __future__ import annotations

import argparse
import time

import pytest
from support.metric_servers import of_devices, serving

from tpusmi.cli.argument_types import ports
from tpusmi.cli.options import with_ports
from tpusmi.cli.visible_chips import with_visible
from tpusmi.collect import PORT_VARIABLE, this_host
from tpusmi.model import Host
from tpusmi.report.select import Selection
from tpusmi.sources.libtpu import Libtpu


def test_a_chosen_port_is_asked_besides_the_usual_one() -> None:
    assert with_ports(Host(), [9000, 8431, 9001]).metrics_ports == (8431, 9000, 9001)
    assert with_ports(Host(), None) == Host()


@pytest.mark.parametrize("text", ["0", "65536", "8476", "x", "", "-1", "1.5", ",".join(["9"] * 17)])
def test_what_is_no_port_of_metrics_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        ports(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9000", (8431, 9000)),
        ("9000,9001,9000", (8431, 9000, 9001)),
        ("", (8431,)),
        ("localhost:9000", (8431,)),
        ("8476,9000,70000", (8431, 9000)),
        (",".join(str(n) for n in range(20000, 20400)), (8431, *range(20000, 20016))),
    ],
)
def test_the_variable_of_nvtop_names_ports_and_nonsense_in_it_is_left_out(
    monkeypatch: pytest.MonkeyPatch, text: str, expected: tuple[int, ...]
) -> None:
    monkeypatch.setenv(PORT_VARIABLE, text)
    assert this_host().metrics_ports == expected


def test_a_server_on_a_chosen_port_is_read() -> None:
    with serving(of_devices(range(2))) as server:
        source = Libtpu(with_ports(Host(metrics_ports=()), [server.port]), lambda: ())
        try:
            read = source.read(time.monotonic())
        finally:
            source.close()
    assert read.servers[0].ids == (0, 1)


@pytest.mark.parametrize(
    ("environ", "chips", "nodes"),
    [
        ({}, (), ()),
        ({"TPU_VISIBLE_CHIPS": "0,2"}, (0, 2), ()),
        ({"TPU_VISIBLE_DEVICES": " 1 "}, (1,), ()),
        ({"TPU_VISIBLE_CHIPS": "", "TPU_VISIBLE_DEVICES": "3"}, (3,), ()),
        ({"TPU_VISIBLE_CHIPS": "0", "TPU_VISIBLE_DEVICES": "3"}, (0,), ()),
        (
            {"TPU_VISIBLE_CHIPS": "0", "TPU_VISIBLE_DEVICE_PATHS": "/dev/vfio/1, /dev/vfio/2"},
            (),
            ("/dev/vfio/1", "/dev/vfio/2"),
        ),
    ],
)
def test_only_the_chips_that_libtpu_would_use_here_are_visible(
    environ: dict[str, str], chips: tuple[int, ...], nodes: tuple[str, ...]
) -> None:
    found = with_visible(Selection(), environ)
    assert (found.visible_chips, found.visible_nodes) == (chips, nodes)
    assert found.names_devices == bool(chips or nodes)


@pytest.mark.parametrize("text", ["a", "0,b", "-1", "0-3", "9" * 50])
def test_a_variable_that_cannot_be_understood_is_an_error_and_not_all_chips(text: str) -> None:
    with pytest.raises(ValueError, match="--only-visible: TPU_VISIBLE_CHIPS: "):
        with_visible(Selection(), {"TPU_VISIBLE_CHIPS": text})
