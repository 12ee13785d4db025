"""Theme, keys, colors and filter of the file, on the whole dashboard."""

from __future__ import annotations

from pathlib import Path

from support import segments
from support.commands import TPUSMI, environment
from support.terminals import terminal

FILE = """
theme = "dark"
[keys]
quit = "z"
help = "F3"
[colors]
bold = "#ff8700"
"""


def test_the_dashboard_has_the_theme_the_colors_and_the_keys_of_the_file(tmp_path: Path) -> None:
    segments.my_segment(tmp_path)
    (tmp_path / "my.toml").write_text(FILE)
    env = environment(tmp_path, TPUSMI_CONFIG=str(tmp_path / "my.toml"), COLORTERM="truecolor")
    with terminal([*TPUSMI, "--only", "text=no such job"], env, 120, 40) as found:
        found.see("tpu:8")
        found.see("Filter: no such job")
        assert b"38;2;95;215;255" in found.written
        assert b"38;2;255;135;0" in found.written
        found.press("q?")
        found.press("\x1bOR")
        found.see("words, marks, columns")
        found.see("F3  ")
        found.see("This help")
        found.press("q")
        found.see("words, marks, columns", gone=True)
        found.press("z")
        assert found.end() == 0
