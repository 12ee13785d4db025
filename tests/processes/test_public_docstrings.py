"""Every public docstring has an example, and each of them is run: on a simulated host, or in a job
with JAX.
"""

from __future__ import annotations

import doctest
import inspect
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from support.commands import environment

import tpusmi
from tpusmi.api.item import Item
from tpusmi.api.whole import Whole
from tpusmi.model import Host
from tpusmi.simulate.host import opened_host

NAMES = [name for name in dir(tpusmi) if not name.startswith("_")]
IN_A_JOB = ("Agent", "start", "step", "stop", "track")
METHODS = [
    method
    for of in (Whole, Item)
    for name, method in vars(of).items()
    if inspect.isfunction(method) and not name.startswith("_")
]
OPTIONS = doctest.ELLIPSIS | doctest.REPORT_NDIFF
JOB = """
import doctest, sys, jax, tpusmi
train_step = jax.jit(lambda x: x * 2)
for name in sys.argv[1:]:
    finder = doctest.DocTestFinder(recurse=False)
    for test in finder.find(getattr(tpusmi, name), name, module=False):
        globs = {"tpusmi": tpusmi, "train_step": train_step}
        test.globs.update(globs)
        found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
        print(test.name, found.attempted, found.failed)
        sys.exit(1) if found.failed else None
"""


@pytest.fixture(scope="module")
def shared() -> Iterator[tuple[Host, tpusmi.Snapshot]]:
    with opened_host("v5e-8", agent=True) as host:
        yield host, tpusmi.snapshot(simulate=host.root)


@pytest.fixture
def host(shared: tuple[Host, tpusmi.Snapshot], monkeypatch: pytest.MonkeyPatch) -> Host:
    """One simulated host for all examples, which is also the machine that they run on: none of them
    looks at, or ends, a process of the real one.
    """
    found = shared[0]
    monkeypatch.setattr("tpusmi.simulate.host.opened_host", lambda *_, **__: nullcontext(found))
    for module in ("api.reading", "freeing", "notebook"):
        monkeypatch.setattr(f"tpusmi.{module}.this_host", lambda: found)
    return found


def examples(thing: object, name: str) -> list[doctest.DocTest]:
    found = doctest.DocTestFinder(recurse=False).find(thing, name, module=False)  # type: ignore[arg-type]
    return [test for test in found if test.examples]


def check(test: doctest.DocTest, snapshot: tpusmi.Snapshot) -> None:
    test.globs.update(tpusmi=tpusmi, s=snapshot)
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append)
    assert result.failed == 0, "".join(said)


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("name", [name for name in NAMES if name not in IN_A_JOB])
def test_the_example_of_a_public_name_runs(
    name: str, shared: tuple[Host, tpusmi.Snapshot], capfd: pytest.CaptureFixture[str]
) -> None:
    (test,) = examples(getattr(tpusmi, name), name)
    check(test, shared[1])


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)
def test_the_example_of_a_method_runs(method: object, shared: tuple[Host, tpusmi.Snapshot]) -> None:
    (test,) = examples(method, "method")
    check(test, shared[1])


def test_the_examples_of_the_agent_run_in_a_job_with_jax(tmp_path: Path) -> None:
    missing = [name for name in IN_A_JOB if not examples(getattr(tpusmi, name), name)]
    assert missing == []
    done = subprocess.run(
        [sys.executable, "-c", JOB, *IN_A_JOB],
        env=environment(tmp_path, JAX_PLATFORMS="cpu"),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == [*IN_A_JOB]
