"""The keys of a slice in `tpusmi --json`."""

from __future__ import annotations

from tpusmi.model.jsonobject import (
    NUMBER,
    NUMBER_OR_NULL,
    TEXT,
    TEXT_OR_NULL,
    WHOLE,
    WHOLE_OR_NULL,
    JsonObject,
    key,
    keys,
    or_null,
    rounded,
)
from tpusmi.model.states import PHASES, SliceState

# fmt: off
_SLICE_DEVICE = JsonObject(
    key("id", WHOLE_OR_NULL, "Global id in JAX and libtpu."),
    key("coords", or_null({"type": "array", "items": WHOLE}), "Place in the slice.",
        lambda s, d: None if d.coords is None else list(d.coords)),
    key("core_on_chip", WHOLE_OR_NULL),
    key("hbm_used_bytes", WHOLE_OR_NULL),
    key("hbm_limit_bytes", WHOLE_OR_NULL),
    key("tensorcore_utilization_percent", NUMBER_OR_NULL),
    key("duty_cycle_percent", NUMBER_OR_NULL),
    key("idle_s", NUMBER_OR_NULL),
)
_SLICE_HOST = JsonObject(
    key("process_index", WHOLE, "Its number in the job."),
    key("slice_index", WHOLE_OR_NULL, "Which slice it is in, of a job of several."),
    key("name", TEXT, "Name of its host."),
    key("kind", TEXT_OR_NULL, "JAX's name of its devices."),
    key("state", {"enum": [*SliceState]}),
    key("age_s", NUMBER, "Age of its figures.", lambda s, h: rounded(h.data_age_s)),
    key("period_s", NUMBER, "Time between two reports of its agent."),
    key("phase", {"enum": [*PHASES, None]}),
    key("steps", WHOLE_OR_NULL),
    key("step_time_s", NUMBER_OR_NULL, "Mean over the last minute."),
    key("since_last_step_s", NUMBER_OR_NULL, "When it said this."),
    key("mfu_percent", NUMBER_OR_NULL),
    key("clock_difference_s", NUMBER_OR_NULL, "Its clock minus that of this host."),
    keys("warnings", TEXT, "Codes of its agent's warnings."),
    key("device_count", WHOLE, "Devices of the process."),
    keys("devices", _SLICE_DEVICE, "The first 32 of them."),
)
SLICE = JsonObject(
    key("pid", WHOLE_OR_NULL, "The process here whose agent has read it."),
    key("process_index", WHOLE, "Its number in the job."),
    key("process_count", WHOLE, "Processes of the job."),
    keys("hosts", _SLICE_HOST, "Every process of the job that has an agent."),
)
# fmt: on
