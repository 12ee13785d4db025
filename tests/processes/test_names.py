"""What devices are called, and which numbers are theirs, where several processes number their own:
on machines with real nodes, processes, users and metrics servers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.private_machine import TRIES, scene
from support.users import ROOT

pytestmark = ROOT

FOUR = """
from contextlib import ExitStack
from support.metric_servers import *
with ExitStack() as stack:
    for n in range(4):
        rows = {HBM_USED: {0: (n + 1) * GIB}, DUTY: {0: 10.0 * n}, TRANSFER: {5: 7.0 * n}}
        stack.enter_context(worker(8431 + n, rows, n, user=2001))
    query = ("--query-tpu=uuid,memory.used", "--format=csv,noheader,nounits")
    table, listed, uuids = said("-1"), said("-L"), said(*query)
    third = uuids.splitlines()[2].partition(",")[0]
    chosen = [said(*query, "--id", word) for word in ("tpu:2", "2", third, "vfio/2")]
    others, found = said("-1", user=2002), seen(user=2002)
    apart = said(*query, "--id", "tpu:0@8433", user=2002)
tell(table=table, listed=listed, uuids=uuids, chosen=chosen, others=others, apart=apart,
    later=said(*query), dcn=found["host"]["dcn"],
    used=[(d["name"], d["chip"], d["hbm_used_bytes"]) for d in found["devices"]])
"""


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """On a busy machine a server may not answer in time, and then the scene is made again."""
    for _ in range(TRIES):
        told = scene(tmp_path_factory.mktemp("four"), FOUR)
        if told["others"].count("\ntpu:0@") == 4 and "N/A" not in told["uuids"]:
            break
    return told


def column(table: str, n: int) -> list[str]:
    """The words in that place of the rows of devices."""
    return [line.split()[n] for line in table.splitlines() if line.startswith("tpu:")]


def test_four_processes_that_each_number_from_0_have_four_names_on_every_screen(
    four: dict[str, Any],
) -> None:
    told = four
    table, listed = told["table"], told["listed"].splitlines()
    assert column(table, 0) == [f"tpu:{n}" for n in range(4)]
    assert [line.partition(":")[0] for line in listed] == [f"TPU {n}" for n in range(4)]
    uuids = [line.split(", ") for line in told["uuids"].splitlines()]
    assert [used for _, used in uuids] == [f"{1024 * (n + 1)}" for n in range(4)]
    assert len({uuid for uuid, _ in uuids}) == 4
    assert all(f"(UUID: {uuid})" in line for (uuid, _), line in zip(uuids, listed, strict=True))
    assert {found.strip() for found in told["chosen"]} == {", ".join(uuids[2])}
    # Whoever remembers a UUID finds the same hardware when the jobs are gone.
    later = [line.split(", ")[0] for line in told["later"].splitlines()]
    assert later == [uuid for uuid, _ in uuids]

    network = [line for line in table.splitlines() if line.startswith("buffer transfer")]
    words = [line.split() for line in network]
    assert [found[5] for found in words] == column(table, 3)
    means = [found[7] for found in words]
    assert means == ["–", "7.00", "14.0", "21.0"]  # one was not told: it is not 0


def test_a_user_who_cannot_see_the_owners_gets_the_rows_of_every_usual_port_apart(
    four: dict[str, Any],
) -> None:
    told = four
    names = [f"tpu:0@{8431 + n}" for n in range(4)]
    assert column(told["others"], 0) == [*(f"tpu:{n}" for n in range(4)), *names]
    assert [used for _, chip, used in told["used"] if chip is not None] == [None] * 4
    assert [used for _, chip, used in told["used"] if chip is None] == [
        (n + 1) << 30 for n in range(4)
    ]
    assert told["apart"] == "tpu:0@localhost:8433, 3072\n"
    assert "reports 1 device of unknown chips" in told["others"]
    (labels,) = told["dcn"].values()
    assert list(labels) == [f"8MB+ port {8431 + n}" for n in range(4)]


WORKERS = """
from contextlib import ExitStack
from support.metric_servers import *
def devices(ids, **variables):
    with ExitStack() as stack:
        pids = []
        for n, own in enumerate(ids):
            told = {name: str(value[n]) for name, value in variables.items()}
            rows = {HBM_USED: {own: (n + 1) * GIB}, DUTY: {own: 10.0 * n}}
            pids.append(stack.enter_context(worker(8431 + n, rows, 0, 1, 2, 3, **told)))
        return [(d["name"], d["chip"], d["hbm_used_bytes"], pids.index(d["pid"]))
            for d in seen()["devices"] if d["hbm_used_bytes"] is not None]
"""
BOTH = """
tell(
    shared=devices(range(4), TPU_VISIBLE_CHIPS=range(4)),
    own=devices([0] * 4, TPU_VISIBLE_CHIPS=range(4)),
)
"""


def test_workers_that_opened_all_nodes_are_told_apart_by_their_variables_and_ids(
    tmp_path: Path,
) -> None:
    told = scene(tmp_path, WORKERS + BOTH)
    assert told["shared"] == [[f"tpu:{n}", n, (n + 1) << 30, n] for n in range(4)]
    # Ids that are not those of the chips are no second witness: they stay apart.
    names = [f"tpu:0@{8431 + n}" for n in range(4)]
    assert [device[:2] for device in told["own"]] == [[name, None] for name in names]


BARE = """
from support.metric_servers import *
ids = (404, 405, 412, 413)
rows = {HBM_USED: {id: (n + 1) * GIB for n, id in enumerate(ids)}, QUEUE: {n: n for n in range(4)}}
rows[BANDWIDTH] = {n: 10.0 * n for n in range(4)}
with worker(8431, rows, 3, 2, 1, 10):
    table, held, found = said("-1"), said("ps", code=5), seen()
with worker(0, {}, 96):
    silent = said("-1")
free = [ran(word) for word in ("-1", "ps")]
tell(
    table=table, held=held, silent=silent, free=[r.stdout + r.stderr for r in free],
    codes=[r.returncode for r in free], notes=[n for s in found["sources"] for n in s["notes"]],
    devices=[(d["name"], d["chip"], d["node"], d["hbm_used_bytes"], d["hlo_queue_size"],
        d["hbm_bandwidth_utilization_percent"])
        for d in found["devices"]],
)
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp("bare")
    return scene(directory, BARE, bus=False, nodes=(1, 2, 3, 10, 96))


def test_without_a_pci_bus_the_rows_of_a_holder_are_joined_to_its_nodes_by_rank(
    bare: dict[str, Any],
) -> None:
    told = bare
    assert told["devices"] == [
        ["tpu:404", None, "/dev/vfio/1", 1 << 30, 0, 0.0],
        ["tpu:405", None, "/dev/vfio/2", 2 << 30, 1, 10.0],
        ["tpu:412", None, "/dev/vfio/3", 3 << 30, 2, 20.0],
        ["tpu:413", None, "/dev/vfio/10", 4 << 30, 3, 30.0],
    ]
    assert not [note for note in told["notes"] if "left out" in note]
    assert column(told["table"], 1) == ["vfio/1", "vfio/2", "vfio/3", "vfio/10"]
    assert "held by 1 process, no holder of /dev/vfio/96" in told["held"]


def test_without_a_pci_bus_no_node_is_a_tpu_as_a_fact(bare: dict[str, Any]) -> None:
    told = bare
    silent = told["silent"]
    assert "tpu:" not in silent
    assert " vfio/96 " in silent
    assert "may be TPUs" in silent
    table, ps = told["free"]
    assert told["codes"] == [3, 3]  # a container: a holder outside it cannot be seen
    assert "/dev/vfio/1 and 4 more may be TPUs" in table
    assert "the TPU is free" not in ps
