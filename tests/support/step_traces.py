"""A trace of a training job on TPUs as bytes, with all that a real one may have: steps, a loop with
operations inside, collectives, infeed and outfeed, copies to the host, custom kernels.
"""

from __future__ import annotations

from tpusmi.simulate.trace_bytes import TracedLine, TracedPlane, TraceWriter, Unsigned, field

PS_PER_US = 1_000_000
PEAK_TERAFLOPS, PEAK_GIGABYTES = 918.0, 1638.0
FUSION_FLOPS, LOOP_FLOPS, BYTES = 10**9, 10**12, 10**6
LOOPS, FUSION_US, REDUCE_US = 10, 60, 30
KERNEL_US, SEND_US, OUTFEED_US, GAP_US = 50, 20, 30, 15
CUT_OFF_LOOPS = 1


def step_trace(
    cores: int = 2,
    steps: int = 5,
    is_cut_off: bool = True,
    infeed_us: int = 100,
    cores_per_chip: int = 1,
) -> bytes:
    """The trace: `infeed_us` is the wait of the first core in each step; 0 is no infeed at all."""
    writer = TraceWriter(["host-0"])
    for core in range(cores):
        plane = writer.plane(f"/device:TPU:{core}")
        _Core(plane, core, core // cores_per_chip).write(steps, is_cut_off, infeed_us)
    writer.plane("Task Environment").stats(
        {"profile_start_time": Unsigned(10**18), "profile_stop_time": Unsigned(10**18 + 10**9)}
    )
    return writer.message


class _Core:
    """Writes one core. Each is a little later than the one before, and waits a little longer."""

    def __init__(self, plane: TracedPlane, core: int, chip: int) -> None:
        self._plane, self._core = plane, core
        plane.stats(
            {
                "device_type_string": "TPU v6 Lite",
                "peak_teraflops_per_second": PEAK_TERAFLOPS,
                "peak_hbm_bw_gigabytes_per_second": PEAK_GIGABYTES,
                "core_details": field(4, chip) + field(5, chip) + field(6, core),
            }
        )
        self._steps, self._modules = plane.line("Steps"), plane.line("XLA Modules")
        self._operations = plane.line("XLA Ops")
        self._kinds: dict[str, int] = {}
        self._at = 1000 + 3 * core

    def write(self, steps: int, is_cut_off: bool, infeed_us: int) -> None:
        """Writes all steps."""
        for step in range(steps):
            began = self._at
            is_last = is_cut_off and step == steps - 1
            if infeed_us:
                self._run("infeed.1", "infeed", infeed_us + 10 * self._core)
            self._loop(CUT_OFF_LOOPS if is_last else LOOPS)
            if not is_last:
                self._end_of_step()
            self._event(self._steps, str(step), began, self._at - began)
            self._event(self._modules, "jit_step(77)", began, self._at - began)
            self._at += GAP_US

    def _loop(self, loops: int) -> None:
        """A loop, and the operations inside it."""
        length = loops * (FUSION_US + REDUCE_US + 10)
        began = self._at
        self._run("while.1", "while", length, LOOP_FLOPS)
        for loop in range(loops):
            self._at = began + loop * (FUSION_US + REDUCE_US + 10)
            self._run("fusion.1", "convolution fusion", FUSION_US, FUSION_FLOPS)
            self._run("all-reduce.1", "all-reduce", REDUCE_US + self._core)
        self._at = began + length

    def _end_of_step(self) -> None:
        self._run("custom-call.1", "custom-call", KERNEL_US)
        self._run("send.1", "host send", SEND_US)
        self._run("outfeed.1", "outfeed", OUTFEED_US)

    def _run(self, name: str, category: str, us: int, flops: int = 0) -> None:
        if name not in self._kinds:
            self._kinds[name] = self._kind(name, category, flops)
        times = {
            "device_offset_ps": Unsigned(self._at * PS_PER_US),
            "device_duration_ps": Unsigned(us * PS_PER_US),
        }
        at_ps, length_ps = self._at * PS_PER_US, us * PS_PER_US
        self._operations.event(self._kinds[name], at_ps, length_ps, times)
        self._at += us

    def _kind(self, name: str, category: str, flops: int) -> int:
        parts = field(1, field(1, 1) + field(2, 1) + field(3, BYTES))
        return self._plane.new_kind(
            f"%{name} = f32[8]{{0}} {category}(f32[8]{{0}} %x)",
            {
                "hlo_category": category,
                "program_id": Unsigned(77),
                "symbol_id": Unsigned(1 + len(self._kinds)),
                "flops": flops,
                "model_flops": flops,
                "bytes_accessed": BYTES,
                "memory_access_breakdown": parts,
                "source": "train.py:41",
                "tf_op": f"jit(step)/{name}:",
            },
            display_name=name,
        )

    def _event(self, line: TracedLine, name: str, at_us: int, us: int) -> None:
        line.event(self._plane.kind(name), at_us * PS_PER_US, us * PS_PER_US, {"run_id": 1})
