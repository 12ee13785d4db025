"""The slice with other versions of JAX than the one that is installed here.

TPUSMI_JAXES names a directory with one directory per version, each filled by
`pip install --no-deps --target DIRECTORY/0.4.30 jax==0.4.30 jaxlib==0.4.30`.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from support.slice_jobs import DEADLINE_S, HELD_UP_S, all_live, slice_job
from support.waits import until

VERSIONS = ("0.4.30", "0.4.38", "0.5.3", "0.6.2", "0.7.2", "0.8.2")
"""The oldest that is supported, and the last one of each further minor version."""
JAXES = Path(os.environ.get("TPUSMI_JAXES", "/nonexistent"))


@pytest.mark.parametrize("version", VERSIONS)
def test_two_hosts_see_each_other_and_a_coordinator_that_hangs_harms_no_step(
    tmp_path: Path, version: str
) -> None:
    if not (JAXES / version / "jax").is_dir():
        pytest.skip(f"no JAX {version} in TPUSMI_JAXES")
    with slice_job(tmp_path, 2, PYTHONPATH=str(JAXES / version)) as members:
        all_live(members)
        processes = members[1].viewer.read_once().processes
        assert [p.facts["jax_version"] for p in processes] == [version]
        members[1].slowest_step_s()
        coordinator = members[0].job.pid
        os.kill(coordinator, signal.SIGSTOP)
        try:
            warning = until(lambda: next(iter(members[1].viewer.read_once().warnings), None))
            assert members[1].slice() is None
            assert f"has not answered for {DEADLINE_S:.0f} s" in warning.message
            assert members[1].slowest_step_s() < HELD_UP_S
        finally:
            os.kill(coordinator, signal.SIGCONT)
