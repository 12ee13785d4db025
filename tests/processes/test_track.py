"""tpusmi.track() around real jitted functions, on eight CPU devices."""

from __future__ import annotations

import functools
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.commands import environment
from support.jobs import Job, collector, job, seen

from tpusmi.model import Process, Snapshot

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="no JAX here")

PRELUDE = """
import os
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import json, threading
from functools import partial
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
import tpusmi, tpusmi.agent
try: from jax import shard_map
except ImportError: from jax.experimental.shard_map import shard_map
N = 64
PRODUCT = 2 * N**3
ones = jnp.ones((N, N))
mesh = jax.make_mesh((8,), ("d",))
rows = jax.device_put(ones, NamedSharding(mesh, P("d", None)))
everywhere = jax.device_put(ones, NamedSharding(mesh, P()))
flops = tpusmi.agent._steps.flops
events = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, duration, **more: events.append(event.rpartition("/")[2]))
def count(function, *args, calls=1, **kwargs):
    # What calls of a function add, in matrix products, with compilations and warnings.
    tpusmi.agent._steps.forget(); flops.notes.clear(); events.clear()
    tracked = tpusmi.track(function)
    for _ in range(calls): result = tracked(*args, **kwargs)
    jax.block_until_ready(result)
    return {
        "products": flops.tracked / PRODUCT,
        "compiled": events.count("backend_compile_duration"),
        "lowered": events.count("jaxpr_to_mlir_module_duration"),
        "notes": flops.notes.copy(),
    }
def scan(body, x, length): return jax.lax.scan(lambda c, _: (body(c), None), x, None, length)[0]
"""

CASES = {
    "plain": "count(jax.jit(lambda x: x @ x), ones, calls=3)",
    "donated": "count(jax.jit(lambda x: x @ x, donate_argnums=0), ones + 1)",
    "donated_and_committed": """count(jax.jit(lambda x: x @ x, donate_argnums=0),
        jax.device_put(ones, jax.devices()[3]))""",
    "static": "count(jax.jit(lambda n, x: x @ x * n, static_argnums=0), 3, ones)",
    "keywords": """count(jax.jit(lambda x, *, y, n: x @ y * n, static_argnames="n"),
        ones, y=ones, n=2)""",
    "numpy": "count(jax.jit(lambda x, s: x @ x * s), np.ones((N, N), np.float32), 2.0)",
    "sharded": "count(jax.jit(lambda x, y: x @ y), rows, everywhere)",
    "sharded_and_donated": """count(jax.jit(lambda x, y: x @ y, donate_argnums=0),
        rows + 1, everywhere)""",
    "scan": "count(jax.jit(lambda x: scan(lambda c: c @ c, x, 10)), ones)",
    "fori_loop": "count(jax.jit(lambda x: jax.lax.fori_loop(0, 7, lambda i, c: c @ c, x)), ones)",
    "gradient_of_scan": """count(jax.jit(jax.grad(
        lambda w: scan(lambda c: jnp.tanh(c @ w), ones, 5).sum())), ones)""",
    "scan_of_additions": "count(jax.jit(lambda x: scan(lambda c: c + 1, x @ x, 10)), ones)",
    "sharded_scan": "count(jax.jit(lambda x, y: scan(lambda c: c @ y, x, 3)), rows, everywhere)",
    "shard_map": """count(jax.jit(shard_map(lambda x, y: x @ y, mesh=mesh,
        in_specs=(P("d", None), P()), out_specs=P("d", None))), rows, everywhere)""",
    "scan_in_shard_map": """count(jax.jit(shard_map(lambda x, y: scan(lambda c: c @ y, x, 3),
        mesh=mesh, in_specs=(P("d", None), P()), out_specs=P("d", None))), rows, everywhere)""",
    "while_loop": """count(jax.jit(lambda x: jax.lax.while_loop(
        lambda c: c.sum() < 0, lambda c: c @ c, x)), ones)""",
    "pmap": "count(jax.pmap(lambda x: x @ x), jnp.ones((8, N, N)))",
    "aot": "count(jax.jit(lambda x: x @ x).lower(ones).compile(), ones, calls=2)",
    "function": "count(lambda x: x @ x, ones)",
}


@functools.lru_cache(maxsize=1)
def counted() -> dict[str, Any]:
    """What each case counted, all run in one process."""
    cases = "".join(f"found[{name!r}] = {code}\n" for name, code in CASES.items())
    return json.loads(run(f"found = {{}}\n{cases}print(json.dumps(found))"))


def run(code: str, **more: str | None) -> str:
    """What a process of eight CPU devices says when it runs the code."""
    found = subprocess.run(
        [sys.executable, "-c", PRELUDE + code],
        env=environment(Path("/nowhere"), **more),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


@pytest.mark.parametrize(
    ("case", "products"),
    {
        "plain": 3,
        "donated": 1,
        "donated_and_committed": 1,
        "static": 1,
        "keywords": 1,
        "numpy": 1,
        "sharded": 1,
        "sharded_and_donated": 1,
        "scan": 10,
        "fori_loop": 7,
        "gradient_of_scan": 15,
        "scan_of_additions": 1,
        "sharded_scan": 3,
        "shard_map": 1,
        "scan_in_shard_map": 3,
    }.items(),
)
def test_a_program_is_counted_whole_and_compiled_once(case: str, products: int) -> None:
    """All its devices, every round of its loops; a little more for what is no product."""
    found = counted()[case]
    assert found["products"] == pytest.approx(products, rel=0.02)
    assert found["compiled"] == found["lowered"] == 1
    assert found["notes"] == {}


def test_a_loop_of_unknown_length_is_not_guessed_at() -> None:
    found = counted()["while_loop"]
    assert found["products"] == 0
    assert "inside a loop of unknown length" in found["notes"]["flops_unknown"]
    assert found["compiled"] == 1


def test_a_compiled_object_is_counted_with_a_word_on_its_loops() -> None:
    found = counted()["aot"]
    assert found["products"] == 2
    assert "loops" in found["notes"]["flops_incomplete"]
    assert found["compiled"] == 0


def test_a_pmap_is_counted_on_all_its_devices_or_not_at_all() -> None:
    found = counted()["pmap"]
    (code,) = found["notes"]
    assert (found["products"], code) in [(8, "flops_incomplete"), (0, "flops_unknown")]


def test_a_plain_function_is_called_and_not_counted() -> None:
    found = counted()["function"]
    assert found["products"] == 0
    assert "is not a jitted function" in found["notes"]["flops_unknown"]


def test_what_is_no_jitted_function_comes_back_as_it_is() -> None:
    code = """
def step(x): return x
assert tpusmi.track(step) is step
assert tpusmi.track(len) is len
print(flops.notes)
"""
    assert "track(step): is not a jitted function" in run(code)


def test_with_time_to_look_each_call_counts_what_its_own_shapes_cost() -> None:
    code = """
import tpusmi.agent.tracked; tpusmi.agent.tracked.SHARE = 1e9
tracked = tpusmi.track(jax.jit(lambda x: x @ x))
large = jnp.ones((2 * N, 2 * N))
for x in (ones, large, ones, large, large): tracked(x)
print(flops.tracked / PRODUCT, events.count("backend_compile_duration"), flops.notes)
"""
    assert run(code).split(" ", 1)[0] == "26.0"


def test_programs_of_different_cost_are_an_estimate_that_follows_the_one_that_runs() -> None:
    code = """
import time
tracked = tpusmi.track(jax.jit(lambda x: x @ x))
large = jnp.ones((2 * N, 2 * N))
tracked(ones); print(flops.notes)
tracked(large); print(*flops.notes.items())
until, products = time.monotonic() + 60.0, 8.0
while products >= 2 and time.monotonic() < until:
    before = flops.tracked
    for _ in range(200): tracked(ones).block_until_ready()
    products = (flops.tracked - before) / PRODUCT / 200
print(products)
"""
    without, note, products = run(code).splitlines()
    assert without == "{}"
    assert note.startswith("('flops_estimated', 'track(<lambda>): runs programs of different cost")
    assert "an estimate" in note
    # It may take a while: a look that takes long on a busy machine makes the pause after it long.
    assert 0.99 < float(products) < 2


def test_programs_that_differ_in_more_than_cost_are_no_estimate() -> None:
    code = """
tracked = tpusmi.track(jax.jit(lambda x: x @ x))
for x in (ones, jax.device_put(ones, jax.devices()[2]), np.ones((N, N), np.float32)): tracked(x)
print(flops.tracked / PRODUCT, flops.notes)
"""
    assert run(code).split() == ["3.0", "{}"]


def test_a_static_number_makes_another_program_and_a_changing_one_does_not() -> None:
    code = """
tracked = tpusmi.track(jax.jit(lambda n, x, i: scan(lambda c: c @ x, x, n) * i, static_argnums=0))
for i in range(600): tracked(1 + i % 2, ones, i)
print(round(flops.tracked / PRODUCT), tracked._cache_size())
"""
    counted, programs = map(int, run(code).split())
    assert programs == 2
    assert 600 <= counted <= 1200


def test_inside_a_trace_it_calls_through_without_counting() -> None:
    code = """
tracked = tpusmi.track(jax.jit(lambda x: (x @ x).sum()))
plain = jax.jit(lambda x: (x @ x).sum())
for transform in (jax.jit, jax.make_jaxpr): transform(tracked)(ones)
jax.jit(jax.grad(tracked))(ones)
jax.jit(jax.vmap(tracked))(jnp.ones((3, N, N))); jax.eval_shape(tracked, ones)
assert (jax.grad(jax.jit(tracked))(ones) == jax.grad(plain)(ones)).all()
print(flops.tracked, flops.notes)
"""
    assert run(code).strip() == "0.0 {}"


@pytest.mark.parametrize(
    "call",
    [
        "jax.grad(tracked)(ones)",
        "jax.linearize(tracked, ones)",
        "jax.vmap(tracked)(jnp.ones((3, N, N)))",
        "jax.vmap(jax.grad(tracked))(jnp.ones((3, N, N)))",
    ],
)
def test_a_call_inside_grad_or_vmap_without_jit_is_said_not_to_be_counted(call: str) -> None:
    code = f"""
tracked = tpusmi.track(jax.jit(lambda x: (x @ x).sum()))
for _ in range(2): {call}
print(flops.tracked, list(flops.notes), "grad or vmap" in str(flops.notes))
"""
    assert run(code).strip() == "0.0 ['flops_incomplete'] True"


def test_results_errors_and_attributes_are_those_of_the_function() -> None:
    code = """
def step(x, y):
    "Doc."
    return x @ y
jitted = jax.jit(step)
tracked = tpusmi.track(jitted)
assert (tracked(ones, y=ones) == ones @ ones).all()
assert (tracked.__name__, tracked.__doc__, tracked.__module__) == ("step", "Doc.", "__main__")
assert tracked.__wrapped__ is step
assert tracked.lower(ones, ones).compile()(ones, ones).shape == (N, N)
assert tracked.eval_shape(ones, ones).shape == (N, N)
import inspect, pickle
assert list(inspect.signature(tracked).parameters) == ["x", "y"]
assert tpusmi.track(tracked) is tracked
try: tracked(ones, jnp.ones((3, 3)))
except TypeError as error: assert "dot_general" in str(error)
else: raise AssertionError
try: tracked.nothing
except AttributeError: pass
else: raise AssertionError
before = flops.tracked
tracked.clear_cache(); tracked(ones, ones); tracked(ones, ones)
assert flops.tracked - before == 2 * PRODUCT
class Model:
    @tpusmi.track
    @partial(jax.jit, static_argnums=0)
    def apply(self, x): return x @ x
assert (Model().apply(ones) == ones @ ones).all()
donated = jnp.ones((N, N)); tpusmi.track(jax.jit(lambda x: x + 1, donate_argnums=0))(donated)
assert donated.is_deleted()
print(flops.notes)
"""
    assert run(code).strip() == "{}"


TRANSFORMED = {
    "jit": "jax.jit(f)",
    "grad": "jax.jit(jax.grad(f))",
    "value_and_grad": "jax.jit(jax.value_and_grad(f))",
    "vmap": "jax.jit(jax.vmap(f))",
    "checkpoint": "jax.jit(jax.grad(jax.checkpoint(f)))",
    "wraps": "jax.jit(functools.wraps(f)(lambda x: 2 * f(x)))",
    "partial": "jax.jit(partial(f))",
    "donation": "jax.jit(lambda x: x + jax.grad(f)(x), donate_argnums=0)",
    "donation_of_itself": "jax.jit(jax.grad(f), donate_argnums=0)",
    "sharding": "jax.jit(jax.grad(f), out_shardings=NamedSharding(mesh, P('d')))",
    "itself": "f",
}


@functools.lru_cache(maxsize=1)
def transformed() -> dict[str, Any]:
    """What each transformation gives of a jitted function, and of the same one tracked."""
    code = """
import functools, warnings
import jax.export
warnings.simplefilter("ignore")
def describe(make, f):
    function, x = make(f), jnp.arange(64.0).reshape(8, 8)
    lowered = function.lower(x)
    compiled = lowered.compile()
    called = jax.tree.map(np.asarray, function(x + 0))
    donated = x + 0
    ran = jax.tree.map(np.asarray, compiled(donated))
    return [str(s) for s in (
        called, ran, donated.is_deleted(), lowered.as_text(), compiled.output_shardings,
        function.eval_shape(x), jax.export.export(function)(x).out_avals, sorted(vars(make(f))),
        isinstance(function, jax.stages.Wrapped))]
found = {}
def total(x): return (x @ x).sum()
for name, code in CASES.items():
    make = eval("lambda f: " + code)
    found[name] = [describe(make, f(jax.jit(total))) for f in (lambda f: f, tpusmi.track)]
print(json.dumps(found))
"""
    return json.loads(run(f"CASES = {TRANSFORMED!r}\n{code}"))


@pytest.mark.parametrize("case", TRANSFORMED)
def test_what_jax_makes_of_a_tracked_function_is_what_it_makes_of_the_function(case: str) -> None:
    """Called, lowered, compiled, exported; with donation and shardings."""
    plain, tracked = transformed()[case]
    assert tracked == plain


def test_a_function_made_of_a_tracked_one_is_tracked_by_its_own() -> None:
    code = """
inner = tpusmi.track(jax.jit(lambda x: (x @ x).sum()))
assert vars(inner).keys() == vars(jax.jit(lambda x: x)).keys()
outer = tpusmi.track(jax.jit(jax.value_and_grad(inner)))
outer(ones); outer(ones)
print(round(flops.tracked / PRODUCT), flops.notes)
"""
    assert run(code).strip() == "6 {}"


def test_a_pickled_tracked_function_counts_where_it_is_loaded() -> None:
    code = """
import copy
tracked = tpusmi.track(jax.jit(lambda x: x @ x))
make, (function,) = tracked.__reduce__()
loaded = make(function)
assert loaded is not tracked and make is tpusmi.track
loaded(ones); print(flops.tracked / PRODUCT)
"""
    assert run(code).strip() == "1.0"


def test_whatever_is_tracked_nothing_is_raised() -> None:
    code = """
import weakref
class Hostile:
    def __getattr__(self, name): raise RuntimeError(name)
class Dead: pass
class Nameless: lower = Dead(); __name__ = Hostile()
Nameless.lower.__module__ = None
proxy = weakref.proxy(Dead())
for thing in ("x", None, 3, Hostile(), Nameless(), proxy, len, Dead):
    assert tpusmi.track(thing) is thing
print(list(flops.notes))
"""
    assert run(code).strip() == "['flops_unknown']"


def test_a_function_that_finds_programs_of_others_in_its_cache_counts_its_own_calls() -> None:
    """JAX shares the programs of one Python function among all its jitted objects."""
    code = """
import tpusmi.agent.tracked; tpusmi.agent.tracked.SHARE = 1e9
def step(x): return x @ x
large = jnp.ones((2 * N, 2 * N))
for _ in range(2):
    tpusmi.agent._steps.forget()
    tracked = tpusmi.track(jax.jit(step))
    for x in (large, large, large, ones): tracked(x)
    print(flops.tracked / PRODUCT)
tpusmi.agent._steps.forget()
jitted = jax.jit(lambda x: x @ x); tracked = tpusmi.track(jitted)
tracked(ones); jitted(large); tracked(ones); tracked(large); tracked(large)
print(flops.tracked / PRODUCT, list(flops.notes))
"""
    assert run(code).split() == ["25.0", "25.0", "18.0", "['flops_estimated']"]


def test_static_values_tell_programs_apart_whatever_they_are() -> None:
    code = """
import tpusmi.agent.tracked; tpusmi.agent.tracked.SHARE = 1e9
class Config: shape = [1, 2]
def loops(s, x): return scan(lambda c: c @ x, x, int(s))
for values in ((1.0, 10.0), ("1", "10")):
    tpusmi.agent._steps.forget()
    tracked = tpusmi.track(jax.jit(loops, static_argnums=0))
    for i in range(4): tracked(values[i % 2], ones)
    print(round(flops.tracked / PRODUCT))
for static in (Config(), mesh):
    tpusmi.agent._steps.forget()
    tracked = tpusmi.track(jax.jit(lambda s, x: x @ x, static_argnums=0))
    for n in (N, 2 * N, N, 2 * N): tracked(static, jnp.ones((n, n)))
    print(flops.tracked / PRODUCT)
print(list(flops.notes))
"""
    assert run(code).split() == ["22", "22", "18.0", "18.0", "['flops_estimated']"]


def test_no_argument_is_kept_alive() -> None:
    code = """
import gc, weakref
class Model: pass
def kept(track):
    function, models = track(jax.jit(lambda m, x: x @ x, static_argnums=0)), []
    for i in range(4):
        model = Model(); models.append(weakref.ref(model))
        function(model, jnp.ones((8 + i, 8 + i)))
    del model
    function.clear_cache(); jax.clear_caches(); gc.collect()
    return sum(model() is not None for model in models)
print(kept(tpusmi.track) - kept(lambda f: f))
"""
    assert run(code).strip() == "0"


def test_where_programs_differ_few_calls_are_looked_at() -> None:
    code = """
import time
from tpusmi.agent import tracked as tracking
looks, cost = [], tracking.cost
def timed(*args):
    began = time.perf_counter()
    found = cost(*args)
    looks.append(time.perf_counter() - began)
    return found
tracking.cost = timed
tracked = tpusmi.track(jax.jit(lambda p: p["x"] @ p["x"] + p["0"]))
rest = {str(i): jnp.ones(()) for i in range(2000)}
small, large = {**rest, "x": ones}, {**rest, "x": jnp.ones((2 * N, 2 * N))}
tracked(small); tracked(large)
looks.clear()
began = time.perf_counter()
for i in range(400): tracked((small, large)[i % 2])
print(sum(looks[:-1]) / (time.perf_counter() - began), list(flops.notes))
"""
    share, notes = run(code).split(maxsplit=1)
    assert float(share) < 0.0011
    assert notes.strip() == "['flops_estimated']"


def test_a_function_is_traced_no_second_time() -> None:
    code = """
traces = []
def step(x, n): traces.append(n); return x @ x
tracked = tpusmi.track(jax.jit(step, static_argnums=1, donate_argnums=0))
for n in range(3): tracked(ones + n, n)
print(traces)
"""
    assert run(code).strip() == "[0, 1, 2]"


def test_costs_that_xla_does_not_tell_are_counted_from_the_trace_and_errors_stay_inside() -> None:
    code = """
from jax._src import stages
for costs in (None, {}, [], [{}], {"flops": float("nan")}, {"flops": -1.0}, {"flops": "x"}):
    stages.Compiled.cost_analysis = lambda self: costs
    assert count(jax.jit(lambda x: x @ x), ones)["products"] == 1
def refuse(self): raise NotImplementedError
stages.Compiled.cost_analysis = refuse
assert count(jax.jit(lambda x: x @ x), ones)["products"] == 1
stages.Traced.lower = refuse
found = count(jax.jit(lambda x: x @ x), ones, calls=3)
print(found["products"], list(found["notes"]))
"""
    assert run(code).strip() == "0.0 ['flops_unknown']"


def test_calls_from_many_threads_are_all_counted() -> None:
    code = """
tracked = tpusmi.track(jax.jit(lambda x: x @ x))
def work():
    for _ in range(500): tracked(ones)
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(flops.tracked / PRODUCT)
"""
    counted = float(run(code))
    # Before 3.11 a thread can be interrupted in the middle of an addition.
    assert counted == 2000 if sys.version_info >= (3, 11) else 1900 < counted <= 2000


def test_where_the_agent_is_disabled_the_function_itself_comes_back() -> None:
    code = "f = jax.jit(lambda x: x); print(tpusmi.track(f) is f)"
    assert run(code, TPUSMI_DISABLE="1").strip() == "True"


TRAINING = """
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
import jax, jax.numpy as jnp, time
train_step = tpusmi.track(jax.jit(lambda x: x @ x))
tpusmi.start(interval_s=0.1)
x = jnp.ones((256, 256))
import select
count, began = 0, time.monotonic()
while True:  # until its input ends
    train_step(x).block_until_ready(); STEP
    count += 1
    time.sleep(0.01)
    if "fork" in CASE and count == 50:
        child = os.fork()
        if not child:
            train_step.__wrapped__; tpusmi.step(flops=1e30); os._exit(0)
        os.waitpid(child, 0)
    if select.select([sys.stdin], [], [], 0)[0]:
        hear(); say(count, count / (time.monotonic() - began) * 2 * 256**3)
"""


def agrees(training: Job, factor: float = 1.0) -> Callable[[Snapshot, Process], bool]:
    """Whether the FLOP/s that are shown are those of the job, which has taken a hundred steps."""

    def compare(s: Snapshot, p: Process) -> bool:
        training.tell("rate")
        steps, per_s = training.hear().split()
        shown = s.value("flops_per_s", p.key)
        right = pytest.approx(factor * float(per_s), rel=0.25)
        return shown is not None and int(steps) > 100 and bool(shown == right)

    return compare


@pytest.mark.parametrize("fork", ["", "fork"])
def test_a_job_on_the_cpu_has_flops_per_second_and_no_mfu(tmp_path: Path, fork: str) -> None:
    place = tmp_path / "segments"
    place.mkdir()
    code = TRAINING.replace("STEP", "tpusmi.step()").replace("CASE", repr(fork))
    with job(place, code) as training:
        snapshot, process = seen(collector(place), training.pid, agrees(training))
        assert snapshot.value("mfu_percent", process.key) is None


def test_flops_that_step_tells_are_published_in_place_of_the_tracked_ones(tmp_path: Path) -> None:
    place = tmp_path / "segments"
    place.mkdir()
    telling = "tpusmi.step(flops=2.0 * 10 * 256**3)"
    with job(place, TRAINING.replace("STEP", telling).replace("CASE", "''")) as training:
        seen(collector(place), training.pid, agrees(training, 10.0))


def test_flops_that_are_no_number_are_a_warning_of_the_job(tmp_path: Path) -> None:
    place = tmp_path / "segments"
    place.mkdir()
    code = TRAINING.replace("STEP", "tpusmi.step(flops=x)").replace("CASE", "''")
    at_once = "from tpusmi.agent import segment; segment.FACTS_LEAST_S = 0.0\n"
    code = code.replace("tpusmi.start(", f"{at_once}tpusmi.start(")
    with job(place, code) as training:
        _, process = seen(collector(place), training.pid, lambda s, p: p.warnings)
        assert [w.code for w in process.warnings] == ["flops_ignored"]
