"""The pictures of the documentation, and the one that a key saves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.dashboards import dashboard, press, text
from support.feeds import two_jobs

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "assets" / "make_screenshots.py"


@pytest.mark.usefixtures("pictured")
def test_the_pictures_in_assets_are_those_of_the_screen_to_the_byte() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


async def test_a_key_saves_the_screen_under_a_name_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with dashboard(two_jobs()) as pilot:
        await press(pilot, "s")
        await press(pilot, "s")
        assert "Saved tpusmi-trainer-7-" in text(pilot, "footer")
    one, two = sorted(tmp_path.iterdir())
    assert one.read_text().startswith("<svg")
    assert "tpu:0" in two.read_text()


async def test_a_directory_that_takes_no_file_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    async with dashboard(two_jobs()) as pilot:
        await press(pilot, "s")
        assert "Cannot save the screenshot: No such file or directory" in text(pilot, "footer")
