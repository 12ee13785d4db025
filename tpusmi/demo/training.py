"""The demo's job: a small transformer learning to continue number sequences, split over 8 devices.

An ordinary JAX program. What shows it to tpusmi are the two calls in main(), and `track`. It
represents the training of a model of 8 billion parameters: it keeps arrays of that size, see
large_arrays.py, and declares the FLOPs of that model. So memory and MFU are those of busy chips.
"""

from __future__ import annotations

import itertools
import os
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import tpusmi
from tpusmi.agent import jaxread
from tpusmi.chips import by_name
from tpusmi.demo.large_arrays import LargeArrays
from tpusmi.simulate.running import Running
from tpusmi.text import counted

VOCABULARY, WIDTH, LAYERS = 64, 128, 2
BATCH, LENGTH, STRIDES = 16, 32, 8
EVALUATE_EVERY = 45
EVALUATION_LENGTHS = (40, 48, 56, 64, 80, 96, 112, 128)
"""Each is compiled at its first use: for about two minutes, one now and then."""
EPOCH = 120
"""Steps; about 40 seconds."""
READ_S = 0.27
"""Mean time to read a batch: most of a step, so that the demo leaves the machine to its user."""
PEAK_RATE, WARMUP = 3e-3, 40

GENERATION = "v5e"
"""The simulated chips that the job runs on."""
LARGE_LAYERS, LARGE_LAYER = 32, 256_000_000
"""Layers of the model that this one stands for, and parameters of a layer."""
FLOPS = 6.0 * LARGE_LAYERS * LARGE_LAYER * 4096
"""A step of that model, on 4096 tokens: forward and backward."""
LARGE_ACTIVATIONS = 72_000_000
"""Numbers that are kept of each of its steps."""
LEAKED, LEAKS_MOST = 4_000_000, 900
"""Numbers that are lost with each step where a leak is asked for, and steps that lose some: an
eighth of the memory."""
LOOK_S = 0.2
STALLED = 6
"""How much longer it waits for its input where that is asked for."""

Params = dict[str, Any]
Moments = tuple[Params, Params]


def init_params(random: np.random.Generator, everywhere: NamedSharding) -> Params:
    """Random weights, a copy on every device."""

    def matrix(*shape: int) -> Any:
        return (random.standard_normal(shape) * shape[-2] ** -0.5).astype(np.float32)

    params = {
        "tokens": matrix(VOCABULARY, WIDTH),
        "qkv": matrix(LAYERS, WIDTH, 3 * WIDTH),
        "mixed": matrix(LAYERS, WIDTH, WIDTH),
        "up": matrix(LAYERS, WIDTH, 4 * WIDTH),
        "down": matrix(LAYERS, 4 * WIDTH, WIDTH),
    }
    placed: Params = jax.device_put(params, everywhere)
    return placed


def init_optimizer(params: Params, everywhere: NamedSharding) -> Moments:
    """Adam's two moments, zero."""
    zeros = {name: np.zeros(value.shape, np.float32) for name, value in params.items()}
    return jax.device_put(zeros, everywhere), jax.device_put(zeros, everywhere)


def init_large_params(arrays: LargeArrays, split: NamedSharding) -> list[jax.Array]:
    """The large model's weights, a part on every device."""
    layer = arrays.content(LARGE_LAYER, jnp.bfloat16)
    return [jax.device_put(layer, split) for _ in range(LARGE_LAYERS)]


def init_large_optimizer(arrays: LargeArrays, split: NamedSharding) -> list[jax.Array]:
    """Adam's two moments of each of its layers."""
    moment = arrays.content(LARGE_LAYER, jnp.float32)
    return [jax.device_put(moment, split) for _ in range(2 * LARGE_LAYERS)]


def make_batch(random: np.random.Generator, length: int, split: NamedSharding) -> jax.Array:
    """Sequences that each count up by a stride of their own, split over the devices."""
    start = random.integers(VOCABULARY, size=(BATCH, 1))
    stride = random.integers(1, STRIDES + 1, size=(BATCH, 1))
    sequences = (start + stride * np.arange(length + 1)) % VOCABULARY
    placed: jax.Array = jax.device_put(sequences.astype(np.int32), split)
    return placed


def normalized(x: jax.Array) -> jax.Array:
    """Every vector at length one, times the square root of its size."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def attention(x: jax.Array, qkv: jax.Array, mixed: jax.Array) -> jax.Array:
    """What each position takes from itself and those before it, the nearer the more."""
    q, k, v = jnp.split(x @ qkv, 3, axis=-1)
    positions = jnp.arange(x.shape[1])
    distance = positions[:, None] - positions
    scores = q @ k.swapaxes(1, 2) * WIDTH**-0.5 - distance
    return jax.nn.softmax(jnp.where(distance >= 0, scores, -1e9)) @ v @ mixed


def forward(params: Params, tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Logits of the next token, and the activations of every layer."""

    def layer(x: jax.Array, weights: Params) -> tuple[jax.Array, jax.Array]:
        x = x + attention(normalized(x), weights["qkv"], weights["mixed"])
        x = x + jax.nn.relu(normalized(x) @ weights["up"]) @ weights["down"]
        return x, x

    x = params["tokens"][tokens]
    layers = {name: params[name] for name in ("qkv", "mixed", "up", "down")}
    x, activations = jax.lax.scan(layer, x, layers)
    return normalized(x) @ params["tokens"].T, activations


def loss(params: Params, tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Cross-entropy of the next token, and the activations of every layer."""
    logits, activations = forward(params, tokens[:, :-1])
    guessed = jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], axis=-1)
    return -guessed.mean(), activations


@tpusmi.track
@jax.jit
def update(params: Params, moments: Moments, tokens: jax.Array, step: float) -> Any:
    """One step of Adam: new params, new moments, and the activations."""
    gradients, activations = jax.grad(loss, has_aux=True)(params, tokens)
    tree_map = jax.tree_util.tree_map
    mean = tree_map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], gradients)
    square = tree_map(lambda s, g: 0.99 * s + 0.01 * g * g, moments[1], gradients)
    rate = PEAK_RATE * jnp.minimum(step / WARMUP, (WARMUP / step) ** 0.5)
    params = tree_map(lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
    return params, (mean, square), activations


@jax.jit
def evaluation_loss(params: Params, tokens: jax.Array) -> jax.Array:
    """The loss alone."""
    return loss(params, tokens)[0]


class Training:
    """A model in training: what lives on the devices from step to step."""

    def __init__(self, mesh: Mesh) -> None:
        spec: Any = PartitionSpec  # JAX leaves it untyped
        everywhere, self.split = NamedSharding(mesh, spec()), NamedSharding(mesh, spec("data"))
        self.random = np.random.default_rng(0)
        self.params = init_params(self.random, everywhere)
        self.moments = init_optimizer(self.params, everywhere)
        self.arrays = LargeArrays()
        self.large_params = init_large_params(self.arrays, self.split)
        self.large_moments = init_large_optimizer(self.arrays, self.split)
        self.activations: list[jax.Array] = []
        self.logged: list[jax.Array] = []

    def train_step(self, step: int, slower: float = 1.0) -> None:
        """Read a batch, which takes `slower` times as long as usual, and learn from it."""
        # A disk that is slow now and then.
        time.sleep(slower * READ_S * self.random.gamma(8) / 8)
        batch = make_batch(self.random, LENGTH, self.split)
        self.params, self.moments, kept = update(self.params, self.moments, batch, float(step))
        self.collect_activations(kept)

    def collect_activations(self, activations: jax.Array) -> None:
        """Keep them until the epoch ends: memory that grows, and is given back at once."""
        if len(self.activations) == 2 * EPOCH:
            self.activations.clear()
        self.activations.append(activations.astype(jnp.bfloat16))
        large = self.arrays.content(LARGE_ACTIVATIONS, jnp.bfloat16)
        self.activations.append(jax.device_put(large, self.split))

    def log_metrics(self) -> None:
        """Remember too much of every step, and for ever: a leak."""
        if len(self.logged) < LEAKS_MOST:
            logged = self.arrays.content(LEAKED, jnp.float32)
            self.logged.append(jax.device_put(logged, self.split))

    def evaluate(self, turn: int) -> float:
        """Loss on sequences longer than those of the training, of another length each turn."""
        length = EVALUATION_LENGTHS[turn % len(EVALUATION_LENGTHS)]
        return float(evaluation_loss(self.params, make_batch(self.random, length, self.split)))


class Faults:
    """What the file of faults of the simulated host asks of its job; nothing elsewhere."""

    def __init__(self) -> None:
        directory = os.path.dirname(os.environ.get("TPUSMI_DIR", ""))
        self._running: Running | None = None
        try:
            self._running = Running(directory)
        except ValueError:
            pass  # an ordinary machine

    def __contains__(self, name: str) -> bool:
        return self._running is not None and name in self._running.faults

    def wait(self) -> None:
        """Look at the file, and wait while it says that the job does nothing."""
        while self._running is not None:
            self._running.refresh()
            if "hang" not in self and "idle" not in self:
                return
            time.sleep(LOOK_S)

    @property
    def slower(self) -> float:
        """How many times as long a step takes."""
        speed = 1.0 if self._running is None else self._running.speed
        return (STALLED if "stall" in self else 1) / speed


def call_devices(kind: str) -> None:
    """Let the agent call the CPU devices what the simulated chips are called: with their peak, the
    FLOPs that the job declares give an MFU.
    """
    read = jaxread.static_facts
    jaxread.static_facts = lambda backend: {**read(backend), "device_kind": kind}


def main() -> None:
    """Train for ever. One line on stdout says that JAX has its devices; the log goes to stderr."""
    generation = by_name(GENERATION)
    assert generation is not None
    call_devices(generation.kind)
    tpusmi.start()
    devices = jax.devices()
    sys.stdout.write(f"training on {counted(len(devices), 'device')}\n")
    sys.stdout.flush()
    training, faults = Training(Mesh(np.array(devices), ("data",))), Faults()
    for step in itertools.count(1):
        faults.wait()
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            training.train_step(step, faults.slower)
        tpusmi.step(flops=FLOPS)
        if "leak" in faults:
            training.log_metrics()
        else:
            training.logged.clear()
        if step % EVALUATE_EVERY == 0:
            value = training.evaluate(step // EVALUATE_EVERY - 1)
            sys.stderr.write(f"step {step}: loss {value:.3f}\n")


if __name__ == "__main__":
    main()
