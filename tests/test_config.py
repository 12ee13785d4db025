"""Settings on the command line and on a terminal: a flag beats the environment, that the file."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest
from support import segments
from support.commands import TPUSMI, environment, tpusmi
from support.terminals import LEFT_ALTERNATE_SCREEN, terminal

from tpusmi.settings import Settings, load
from tpusmi.tui.draw.themes import THEMES
from tpusmi.tui.feed import DeviceView

PROBE = f"""
import sys
sys.path[:0] = {[*map(os.path.abspath, sys.path)]!r}
from textual.app import App
from tpusmi.tui.draw.lines import Lines
from tpusmi.tui.draw.look import Look
from tpusmi.tui.draw.themes import shown_here

class Probe(App):
    CSS = "Lines {{ height: 1; width: 100%; }}"
    BINDINGS = [("q", "quit")]

    def compose(self):
        look = Look(theme=shown_here(sys.argv[1]))
        lines = Lines(look)
        lines.show([look.line(*((name, name) for name in look.style))])
        yield lines

Probe(ansi_color=True).run()
"""
SGR = re.compile(rb"\x1b\[([\d;]*)m")


@pytest.fixture
def job(tmp_path: Path) -> Path:
    segments.my_segment(tmp_path)
    return tmp_path


def written(directory: Path, text: str) -> str:
    path = directory / "my.toml"
    path.write_text(text)
    return str(path)


def sgr_codes(output: bytes) -> list[str]:
    """What was asked of the terminal: `1`, `31`, `38;5;75`, `38;2;1;2;3`."""
    codes = b";".join(SGR.findall(output)).decode()
    return re.findall(r"[34]8;5;\d+|[34]8;2;\d+;\d+;\d+|\d+", codes)


@pytest.mark.parametrize(
    ("term", "extended"),
    [("linux", ""), ("xterm", ""), ("screen-256color", "5"), ("tmux-direct", "2")],
)
@pytest.mark.parametrize("theme", ["dark", "light", "colorblind", "ansi", "mono"])
def test_a_theme_asks_no_more_of_a_terminal_than_it_can(
    tmp_path: Path, term: str, extended: str, theme: str
) -> None:
    if theme in ("ansi", "mono"):
        extended = ""
    more = {"TERM": term, "COLORTERM": "truecolor" if extended == "2" else None}
    command = [sys.executable, "-c", PROBE, theme]
    with terminal(command, environment(tmp_path, **more), 160, 5) as found:
        found.see("heat4")
        found.press("q")
        assert found.end() == 0
        codes = sgr_codes(found.written)
    kinds = {code[3] for code in codes if ";" in code}
    assert kinds == {*extended}
    of_16 = {code for code in codes if re.fullmatch("3[0-7]|4[0-7]|9[0-7]|10[0-7]", code)}
    assert bool(of_16) is (not extended and theme != "mono")
    assert "1" in codes


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("theme = ", "not valid TOML"),
        ('[keys]\nkil = "x"', '[keys] unknown key kil; did you mean "kill"?'),
    ],
)
@pytest.mark.parametrize("on", [[], ["--simulate", "v5e-8"]], ids=" ".join)
def test_with_a_bad_file_the_dashboard_does_not_start_and_says_why(
    job: Path, text: str, sentence: str, on: list[str]
) -> None:
    path = written(job, text)
    with terminal([*TPUSMI, *on, "--config", path], environment(job), 200, 20) as found:
        assert found.end() == 2
        found.see(sentence)
        assert LEFT_ALTERNATE_SCREEN not in found.written
        assert b"Traceback" not in found.written


def test_the_dashboard_is_as_the_file_says_and_a_flag_beats_it(job: Path) -> None:
    env = environment(job, TPUSMI_CONFIG=written(job, "interval = 5\nascii = true"))
    for arguments, said in (([], "every 5s"), (["--interval", "2"], "every 2s")):
        with terminal([*TPUSMI, *arguments], env, 120, 30) as found:
            found.see("tpu:8")
            found.see(said)
            found.press("q")
            assert found.end() == 0
        drawn = re.sub(rb"\x1b\[[\d;?<>=u]*[a-zA-Z]", b"", found.written)
        assert drawn.isascii()


@pytest.mark.parametrize(
    ("arguments", "no_color", "colored"),
    [
        ([], "1", False),
        ([], "", True),
        (["--color"], "1", True),
        (["--theme", "ansi"], "1", True),
        (["--no-color"], None, False),
        (["--no-color", "--theme", "ansi"], None, False),
    ],
)
def test_a_flag_beats_no_color_and_that_the_file(
    job: Path, arguments: list[str], no_color: str | None, colored: bool
) -> None:
    more = {"TPUSMI_CONFIG": written(job, 'theme = "ansi"'), "NO_COLOR": no_color}
    with terminal([*TPUSMI, *arguments], environment(job, **more), 120, 30) as found:
        found.see("tpu:8")
        found.press("q")
        assert found.end() == 0
        codes = sgr_codes(found.written)
    assert any(re.fullmatch("3[0-7]|4[0-7]|9[0-7]", code) for code in codes) is colored


def test_only_some_users_processes_are_shown_as_the_file_says(job: Path) -> None:
    env = environment(job, TPUSMI_CONFIG=written(job, 'only_user = "no-such-user"'))
    for arguments, seen in (([], False), (["--only", "user="], True), (["-u"], True)):
        with terminal([*TPUSMI, *arguments], env, 120, 30) as found:
            found.see("every 1s")
            found.see("train.py" if seen else "No JAX job")
            found.press("q")
            assert found.end() == 0


def test_an_output_for_scripts_does_not_read_the_file(job: Path) -> None:
    bad = written(job, "nonsense")
    for arguments in (["--json"], ["--once"], ["-L"], ["--version"]):
        assert tpusmi(job, *arguments, TPUSMI_CONFIG=bad).returncode == 0
        assert tpusmi(job, "--config", bad, *arguments).returncode == 0


def test_printed_settings_are_a_file_of_them(tmp_path: Path) -> None:
    base = written(tmp_path, 'view = "compact"\ninterval = 3\n[keys]\nkill = "z"')
    flags = ["--theme", "colorblind", "--interval", "2", "--ascii", "--config", base]
    found = tpusmi(tmp_path, "--print-config", *flags, PYTHONIOENCODING="ascii")
    assert (found.returncode, found.stderr) == (0, "")
    assert load(written(tmp_path, found.stdout)) == Settings(
        theme="colorblind", interval_s=2.0, view="compact", ascii=True, keys={"kill": "z"}
    )


def test_the_defaults_are_printed_where_no_file_is(tmp_path: Path) -> None:
    found = tpusmi(tmp_path, "--print-config", XDG_CONFIG_HOME=str(tmp_path))
    assert load(written(tmp_path, found.stdout)) == Settings()
    as_a_file = f"{tmp_path}/tpusmi/config.toml"
    assert found.stdout.startswith(f"# To change a setting, save this as {as_a_file}\n")
    Path(as_a_file).parent.mkdir()
    Path(as_a_file).write_text(found.stdout)
    again = tpusmi(tmp_path, "--print-config", XDG_CONFIG_HOME=str(tmp_path))
    assert again.stdout.startswith(f"# The dashboard of tpusmi reads this from {as_a_file}\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--print-config", "--config", "no/such.toml"], "there is no such file"),
        (["--theme", "drak"], '"drak" is not a theme; did you mean "dark"?'),
        (["--view", "wide"], '"wide" is not a view'),
        (["--only", "chip=a"], "a is not a list of chips such as 0,2-5"),
        (["--only", "pid=" + "9" * 5000], "99999999999999999999… is too large"),
        (["--only", "chips=1"], "takes user=, pid=, chip=, id=, text=; got chips=1"),
        (["--only", "pid="], "is empty"),
        (["--only", "text=stp<3"], "no column stp; did you mean step?"),
        (["--no-headers"], "--no-headers"),
        (["--interval", "nan"], "not between 0.1 and 86400"),
    ],
)
def test_wrong_words_exit_2_and_say_why(
    tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    found = tpusmi(tmp_path, *arguments)
    assert found.returncode == 2
    assert sentence in found.stderr
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize(
    ("only", "shown"),
    [
        ([f"pid={os.getpid()}"], True),
        (["pid=1"], False),
        (["user=no-such-user"], False),
        (["user="], True),
        (["id=tpu:8"], True),
        (["text=TRAIN"], True),
        (["text=no such word"], False),
        (["text=step<1h ~train.*py"], True),
        (["text=step>1h"], False),
        (["text=!train"], False),
        (["text=train", "pid=1"], False),
        (["chip=77"], False),
    ],
)
def test_only_chooses_processes_of_every_output(job: Path, only: list[str], shown: bool) -> None:
    flags = [word for one in only for word in ("--only", one)]
    found = json.loads(tpusmi(job, "--json", *flags).stdout)
    assert bool(found["processes"]) is shown
    assert bool(found["devices"]) is shown


def test_header_and_processes_are_left_out_of_the_table(job: Path) -> None:
    whole = tpusmi(job, "-1").stdout
    assert whole.startswith("tpusmi ")
    assert "train.py" in whole
    found = tpusmi(job, "-1", "--no-header", "--no-processes").stdout
    assert found.startswith("DEVICE ")
    assert "train.py" not in found


def test_a_chip_is_all_of_its_devices(tmp_path: Path) -> None:
    found = tpusmi(tmp_path, "--simulate", "v3-8", "--json", "--only", "chip=1")
    assert [d["index"] for d in json.loads(found.stdout)["devices"]] == [2, 3]


def test_the_manual_names_every_theme_and_view(tmp_path: Path) -> None:
    manual = " ".join(tpusmi(tmp_path, "--help").stdout.split())
    assert ", ".join([*THEMES][:3]) in manual
    assert f"{{{','.join(DeviceView)}}}" in manual
    assert load(os.devnull).theme in manual
