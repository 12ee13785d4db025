"""The compiled programs of the simulated job: their operations, as a profiler names them.

A training step of a transformer whose layers are one loop forwards and one backwards.
"""

from __future__ import annotations

import zlib
from typing import NamedTuple

from tpusmi.simulate.memory_profile import DIRECTORY
from tpusmi.simulate.workload import EVALUATE, HUNG, PROGRAMS, SAVE, STALL, TRAIN

DOT, LOOP, COPY, FORMAT = "convolution fusion", "loop fusion", "copy", "data formatting"
ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER = "all-reduce", "all-gather", "reduce-scatter"
COLLECTIVES = (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER)
INFEED, WHILE = "infeed", "while"


class SimulatedOperation(NamedTuple):
    """One operation of a program."""

    name: str
    category: str
    share: float
    """A share of the time of all that compute, or of all collectives. Over all layers of a loop."""
    intensity: float
    """How many FLOPs it does in a time, compared to the other operations."""
    traffic: float
    """How many bytes of HBM it moves in a time, compared to the other operations."""
    line: str
    path: str
    """In JAX, below the program's name."""

    @property
    def is_collective(self) -> bool:
        return self.category in COLLECTIVES

    @property
    def hlo(self) -> str:
        """Its line of the program."""
        opcode = "fusion" if self.category.endswith("fusion") else self.category
        return f"%{self.name} = bf16[8,4096,4096]{{2,1,0:T(8,128)(2,1)}} {opcode}(%param.1)"


class Loop(NamedTuple):
    """A while loop, whose body runs once for each layer."""

    name: str
    body: tuple[SimulatedOperation, ...]
    path: str


class SimulatedProgram(NamedTuple):
    """One compiled program."""

    function: str
    module: str
    """As libtpu calls it."""
    parts: tuple[SimulatedOperation | Loop, ...]

    @property
    def id(self) -> int:
        """A fingerprint of 64 bits, always the same."""
        halves = (zlib.crc32(f"{self.function}{half}".encode()) for half in range(2))
        return next(halves) << 32 | next(halves)

    @property
    def name(self) -> str:
        """As profilers call it: `jit_train_step`."""
        return f"jit_{self.function}"

    @property
    def operations(self) -> tuple[SimulatedOperation, ...]:
        """All its operations but the loops."""
        bodies = (part.body if isinstance(part, Loop) else (part,) for part in self.parts)
        return tuple(operation for body in bodies for operation in body)


_Op = SimulatedOperation
_FORWARD = Loop(
    "while.7",
    (
        _Op("fusion.21", LOOP, 0.022, 0.02, 1.4, "model.py:31", "layer/norm/mul"),
        _Op("all-gather.2", ALL_GATHER, 0.25, 0.0, 0.3, "model.py:18", "layer/all_gather"),
        _Op("fusion.101", DOT, 0.055, 1.0, 0.9, "model.py:44", "layer/attention/qkv/dot_general"),
        _Op(
            "fusion.102", DOT, 0.035, 0.8, 1.0, "model.py:52", "layer/attention/scores/dot_general"
        ),
        _Op("fusion.23", LOOP, 0.028, 0.03, 1.4, "model.py:54", "layer/attention/softmax/exp"),
        _Op("fusion.103", DOT, 0.03, 1.0, 0.9, "model.py:58", "layer/attention/out/dot_general"),
        _Op("fusion.104", DOT, 0.07, 1.1, 0.8, "model.py:71", "layer/mlp/up/dot_general"),
        _Op("fusion.105", DOT, 0.06, 1.1, 0.8, "model.py:74", "layer/mlp/down/dot_general"),
    ),
    "jvp(Model)/while",
)
_BACKWARD = Loop(
    "while.8",
    (
        _Op("fusion.121", DOT, 0.13, 1.1, 0.8, "model.py:74", "layer/mlp/down/dot_general"),
        _Op("fusion.122", DOT, 0.15, 1.1, 0.8, "model.py:71", "layer/mlp/up/dot_general"),
        _Op("fusion.31", LOOP, 0.045, 0.03, 1.4, "model.py:54", "layer/attention/softmax/mul"),
        _Op("fusion.123", DOT, 0.08, 0.8, 1.0, "model.py:52", "layer/attention/scores/dot_general"),
        _Op("fusion.124", DOT, 0.06, 1.0, 0.9, "model.py:58", "layer/attention/out/dot_general"),
        _Op("fusion.125", DOT, 0.08, 1.0, 0.9, "model.py:44", "layer/attention/qkv/dot_general"),
        _Op("fusion.33", LOOP, 0.025, 0.02, 1.4, "model.py:31", "layer/norm/reduce_sum"),
        _Op("reduce-scatter.4", REDUCE_SCATTER, 0.4, 0.0, 0.3, "model.py:18", "layer/psum_scatter"),
    ),
    "transpose(jvp(Model))/while",
)
_EMBED = _Op("fusion.3", LOOP, 0.012, 0.0, 1.3, "model.py:88", "jvp(Model)/embed/gather")
_LOGITS = _Op("fusion.141", DOT, 0.04, 1.0, 0.9, "model.py:96", "jvp(Model)/logits/dot_general")
_LOSS = _Op("fusion.41", LOOP, 0.02, 0.03, 1.4, "train.py:97", "jvp(loss)/log_softmax")
_TRAIN_STEP = SimulatedProgram(
    "train_step",
    PROGRAMS[TRAIN],
    (
        _Op("copy.14", COPY, 0.004, 0.0, 1.3, "train.py:112", "copy"),
        _EMBED,
        _FORWARD,
        _LOGITS,
        _LOSS,
        _BACKWARD,
        _Op("all-reduce.5", ALL_REDUCE, 0.35, 0.0, 0.3, "train.py:104", "psum"),
        _Op("fusion.52", LOOP, 0.05, 0.02, 1.5, "train.py:108", "adam/add"),
        _Op("transpose.6", FORMAT, 0.004, 0.0, 1.2, "train.py:110", "transpose"),
    ),
)
_READ_INPUT = _Op("infeed.1", INFEED, 0.0, 0.0, 0.0, "data.py:77", "infeed")
_EVALUATION = SimulatedProgram(
    "evaluate",
    PROGRAMS[EVALUATE],
    (
        _EMBED,
        _FORWARD,
        _LOGITS,
        _LOSS,
        _Op("all-reduce.9", ALL_REDUCE, 0.35, 0.0, 0.3, "evaluate.py:33", "psum"),
    ),
)
_SNAPSHOT = SimulatedProgram(
    "snapshot",
    PROGRAMS[SAVE],
    (
        _Op("fusion.61", DOT, 0.5, 1.0, 1.0, "checkpoint.py:31", "fingerprint/dot_general"),
        _Op("copy.2", COPY, 0.5, 0.0, 1.0, "checkpoint.py:24", "copy"),
    ),
)
PROGRAM_OF = {
    TRAIN: _TRAIN_STEP,
    STALL: _TRAIN_STEP._replace(parts=(_READ_INPUT, *_TRAIN_STEP.parts)),
    EVALUATE: _EVALUATION,
    SAVE: _SNAPSHOT,
    HUNG: _TRAIN_STEP,
}
"""What runs, by the activity of the workload; nothing does in the others."""


def source(line: str) -> str:
    """The whole path of a line of the job."""
    return f"{DIRECTORY}/{line}"
