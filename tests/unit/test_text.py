"""Text from outside: control characters and secrets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpusmi.text import HIDDEN, clean, command_line, redacted


@pytest.mark.parametrize(
    "word",
    [
        "--token=s3cret",
        "--hf_token=s3cret",
        "--api-key=s3cret",
        "WANDB_API_KEY=s3cret",
        "MY_KEY=s3cret",
        "--password=s3cret",
        "AWS_SECRET=s3cret",
        "hf_s3cretabcdefgh",
        "https://me:s3cret@host/path",
        ["gs://x?auth=1", "--auth=s3cret"][-1],
        "sk-s3cretabcdef",
        "--env=HF_TOKEN=s3cret",
        '{"api_key": "s3cret", "x": 1}',
        '{\\"api_key\\": \\"s3cret\\"}',
        '{"auth":{"token":{"value":"s3cret"}}}',
        '{"password":["a","s3cret"]}',
        "os.environ['HF_TOKEN']='s3cret'",
        "Authorization: Bearer s3cretabc",
        "https://s3cret@host/x",
        "gs://x?a=1&sig=s3cret",
        "--pwd=s3cret",
        "--api-keys=s3cret",
        "AccountKey=s3cret;x=1",
        "eyJs3cretabcdef.s3cret.s3cret",
    ],
)
def test_what_looks_like_a_secret_is_hidden(word: str) -> None:
    assert "s3cret" not in redacted(word)
    assert HIDDEN in redacted(word)


@pytest.mark.parametrize("flag", ["--token", "--api_key", "-token", "--hf-token"])
def test_the_argument_after_a_secret_flag_is_hidden(flag: str) -> None:
    assert command_line(["train", flag, "s3cret", "x"]) == f"train {flag} {HIDDEN} x"


@pytest.mark.parametrize(
    "word",
    [
        *("--num_tokens=5", "--tokenizer=gpt2", "--max-tokens=128", "--key-frames=3", "--monkey=1"),
        *("a", "--pattern=x", "--compat=1", "--bypass", "--path=/x", "design: y", "http://h/x"),
    ],
)
def test_what_only_sounds_like_a_secret_stays(word: str) -> None:
    assert redacted(word) == word


def test_control_characters_cannot_reach_the_terminal() -> None:
    assert clean("a\x1b[31mb\nc\x07\u202ed\udc80e") == "a [31mb c d e"


@given(st.text(), st.integers(0, 50))
def test_clean_text_is_printable_and_never_longer_than_asked(text: str, most: int) -> None:
    found = clean(text, most)
    assert len(found) <= most
    assert found.isprintable()
    found.encode("utf-8")
