"""The exporters that a user names for `--hosts`."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tpusmi import configuration_file
from tpusmi.fleet.exporters.exporter_addresses import ADDRESSES_MOST, Exporters, exporters_of


def parsed(text: str, given: bytes = b"") -> Exporters:
    return exporters_of(text, lambda most: given[:most])


def names(text: str, given: bytes = b"") -> list[str]:
    found = parsed(text, given)
    return [*map(str, found.exporters), *(f"@{one}" for one in found.services)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("worker-0", ["worker-0:8781"]),
        ("a:1,b:2 c", ["a:1", "b:2", "c:8781"]),
        ("a,a,a:8781", ["a:8781"]),
        ("10.0.0.1,[::1]:9000,[fe80::1]", ["10.0.0.1:8781", "[::1]:9000", "[fe80::1]:8781"]),
        ("w-[0-2]:9", ["w-0:9", "w-1:9", "w-2:9"]),
        ("w[08-10,3]", ["w08:8781", "w09:8781", "w10:8781", "w3:8781"]),
        ("r[1-2]-n[0-1]", [f"r{r}-n{n}:8781" for r in (1, 2) for n in (0, 1)]),
        ("h:9/metrics,h:[5-6]/m", ["h:9", "h:5/m", "h:6/m"]),
        ("https://h", ["https://h:8781"]),
        ("http://h:99/metrics", ["h:99"]),
        ("https://h:99/a/b?x=y", ["https://h:99/a/b?x=y"]),
        ("http://[::1]:99/", ["[::1]:99"]),
        ("http://w-[0-1]:5/m", ["w-0:5/m", "w-1:5/m"]),
        ("@tpusmi.default.svc,b", ["b:8781", "@tpusmi.default.svc:8781"]),
        ("@https://tpusmi.default.svc:9", ["@https://tpusmi.default.svc:9"]),
    ],
)
def test_addresses_are_read(text: str, expected: list[str]) -> None:
    assert names(text) == expected


def test_a_file_has_addresses_in_its_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "my hosts"
    path.write_text("# of the slice\nw-[0-1]  # two\n\n@svc:9\n")
    expected = ["w-0:8781", "w-1:8781", "@svc:9"]
    assert names(str(path)) == expected
    monkeypatch.chdir(tmp_path)
    path.rename("hosts")
    assert names("hosts") == expected
    assert names("./hosts,x") == ["w-0:8781", "w-1:8781", "x:8781", "@svc:9"]


def test_a_text_file_that_is_not_here_is_not_the_name_of_a_machine() -> None:
    with pytest.raises(ValueError, match=r"^hosts\.txt cannot be read: No such file"):
        parsed("hosts.txt")


def test_a_dash_is_standard_input() -> None:
    assert names("-", b"a\nb:5 # x\n") == ["a:8781", "b:5"]


def test_a_pipe_is_read_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    monkeypatch.setattr(configuration_file, "PIPE_S", 0.5)
    reading, writing = os.pipe()
    writer = threading.Timer(0.1, lambda: (os.write(writing, b"a\n"), os.close(writing)))
    writer.start()
    try:
        assert names(f"/dev/fd/{reading}") == ["a:8781"]
    finally:
        writer.join()
        os.close(reading)
    with pytest.raises(ValueError, match="pipe takes too long to read"):
        names(pipe)  # no process writes to it


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "there is no address of an exporter"),
        (",", "there is no address of an exporter"),
        ("::1", r"::1 needs brackets around its IPv6 address: write \[::1\]:8781"),
        ("a:0", "a:0: 0 is not a port"),
        ("a:99999", "a:99999: 99999 is not a port"),
        ("a:b", "a:b is not an address such as worker-0:8781"),
        ("-x", "-x is not an address"),
        ("ftp://a", "a is not a URL|not a URL"),
        ("w[3-1]", r"\[3-1\] is not a range such as \[0-63\]"),
        ("w[1-]", r"\[1-\] is not a range"),
        ("w[]", "is not an address"),
        ("[w", r"\[w is not an address"),
        ("w[0-9999]", f"there are more than {ADDRESSES_MOST} addresses"),
        ("w[0-999][0-999][0-999][0-999]", f"there are more than {ADDRESSES_MOST} addresses"),
        ("./none", "./none cannot be read: No such file"),
        ("/", "/ cannot be read: Is a directory"),
        ("x" * 5000, "is too long"),
    ],
)
def test_what_is_no_address_ends_in_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        names(text)


@pytest.mark.parametrize(
    "text", ["http://me:s3cret@h/", "me:s3cret@h", "https://s3cret@h:1/metrics"]
)
def test_a_password_in_an_address_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="--http-config") as failed:
        names(text)
    assert "s3cret" not in str(failed.value)


def test_the_title_of_many_is_their_number() -> None:
    assert str(parsed("a")) == "a:8781"
    assert str(parsed("@a")) == "@a:8781"
    assert str(parsed("a,b,@c")) == "3 exporters"
