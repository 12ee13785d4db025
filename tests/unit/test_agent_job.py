"""What is left of the files of a capture when its job was killed."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from tpusmi.profiler.agent_job import AgentJob, JobDirectory
from tpusmi.sources.mounts import Pointer


def test_the_folder_of_a_dead_job_goes_with_the_directory_that_was_made_for_it(
    tmp_path: Path,
) -> None:
    uid = os.geteuid()
    segment = tmp_path / "shm" / f"tpusmi-{uid}" / "5-900.seg"
    own = tmp_path / "tmp" / f"tpusmi-{uid}"
    others = tmp_path / "of-the-user"
    for directory in (segment.parent, own, others):
        directory.mkdir(parents=True)
    segment.touch()
    job = SimpleNamespace(
        uid=uid, pid=5, host=SimpleNamespace(root="/x"), file=SimpleNamespace(path=str(segment))
    )
    job.file.within = ""
    directory = JobDirectory(cast(AgentJob, job), Pointer(-1, b""))
    for parent in (own, others, segment.parent):
        folder = parent / "5-900.nonce.capture"
        folder.mkdir()
        (folder / "trace.xplane.pb").touch()
        directory.remove_folder(folder.name if parent == segment.parent else str(folder))
        assert not folder.exists()
    assert not own.exists()
    assert others.is_dir()
    assert segment.exists()
