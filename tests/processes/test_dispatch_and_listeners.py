"""A real JAX job whose step only dispatches, and in which a library clears JAX's listeners."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.jobs import Job, collector, job, seen

from tpusmi.collect import Collector
from tpusmi.model import Process, Snapshot

CODE = """
    from tpusmi.agent import segment
    segment.FACTS_LEAST_S = 0.1
    tpusmi.start(interval_s=0.05)
    import jax, jax.monitoring, jax.numpy as jnp
    f = jax.jit(lambda x: jax.lax.fori_loop(0, 40, lambda i, a: jnp.sin(a @ a) * 0.01, x))
    x = jnp.ones((300, 300)); f(x).block_until_ready()
    def dispatch():
        for _ in range(30):
            with tpusmi.step(flops=40 * 2 * 300**3): y = f(x)
            float(y[0, 0])  # the log line of every training loop
    def clear(): jax.monitoring.clear_event_listeners()
    def recompile():
        for n in range(4, 12): jax.jit(lambda x: x * 2)(jnp.ones(n)); tpusmi.step()
    while True: exec(hear()); say("done")
"""


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Job, Collector]]:
    directory = tmp_path_factory.mktemp("real") / "segments"
    with job(directory, CODE) as running:
        yield running, collector(directory)


def do(real: Job, what: str) -> None:
    real.tell(what)
    assert real.hear() == "done"


def test_mean_and_rate_agree_where_the_body_only_dispatches(real: tuple[Job, Collector]) -> None:
    running, looking = real
    do(running, "dispatch()")
    s, p = seen(looking, running.pid, lambda s, p: s.value("steps", p.key) == 30)
    period, body, per_s, flops_per_s = (
        s.value(name, p.key) or 0.0
        for name in ("step_time_s.mean", "step_body_s.mean", "steps_per_s", "flops_per_s")
    )
    assert 0 < body < period < 1.2 / per_s  # the rate falls once it has paused
    assert s.value("compilations", p.key)
    assert flops_per_s < 1.5 * 40 * 2 * 300**3 / period


def test_cleared_listeners_leave_no_count_that_stands_still(real: tuple[Job, Collector]) -> None:
    running, looking = real
    do(running, "clear(); recompile()")

    def has_noticed(s: Snapshot, p: Process) -> bool:
        return any(w.code == "compilations_missed" for w in p.warnings)

    s, p = seen(looking, running.pid, has_noticed)
    for name in ("compilations", "compile_s", "recent_compilations"):
        assert s.value(name, p.key) is None
    do(running, "import tpusmi.agent as a; heard = a._sampler.compilations.count; recompile()")
    do(running, "assert a._sampler.compilations.count >= heard + 8")
    do(running, "clear(); tpusmi.stop()")
    assert running.stderr == ""
