"""Text from outside: control characters and secrets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.clocks import takes_at_most

from tpusmi.text import (
    ARGV_MOST,
    HIDDEN,
    WORD_MOST,
    clean,
    command_line,
    redacted,
    whole_number,
    without_secrets,
)


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
        "eyJs3cretabcdef.s3cret.s3cret.s3cret.s3cret",
        "x-eyJs3cretabcdef.s3cret",
        "--password=two s3cret words",
        "--password='s3cret with \"quotes\"'",
        "bash -c 'curl -H \"Authorization: token s3cret\" x'",
        "curl -H 'authorization: basic s3cret' x",
        "sig: {x: s3cret}, token:   s3cret",
        "export API_KEY = s3cret && python train.py",
        "db.pwd=s3cret",
        "passphrase:s3cret",
        "wandb.login(key='a', api_key='s3cret')",
        "a=b;c=d;session_cookie=s3cret",
        "'HF_TOKEN']]]]   =   's3cret'",
        '\\\\\\"token\\\\\\":\\\\\\"s3cret\\\\\\"',
        "github_pat_s3cretabcdef",
        "postgres://u:s3cret@h,postgres://u:s3cret@i",
        "https://h/?a=1&x_signature=s3cret&b=2",
        "MY_PAT=s3cret",
        "ya29.s3cret-abcdef",
        "xoxb-s3cret-abcdef",
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


@pytest.mark.parametrize(
    ("before", "secret"),
    [
        ("token=", "Z9cret" * 9000),
        ("x hf_", "Z9cretabcdefgh"),
        ("x eyJ", "Z9cretabcdef.s3cret.s3cret"),
        ("postgres://u:", "Z9cret@host"),
        ('{"api_key": "', 'Z9cret"}'),
        ("Authorization: Bearer ", "Z9cret"),
    ],
)
@pytest.mark.parametrize("shown", [1, 3, 5, 8, 30])
def test_no_part_of_a_secret_is_shown_where_the_text_is_cut(
    before: str, secret: str, shown: int
) -> None:
    word = " " * (WORD_MOST - len(before) - shown) + before + secret
    assert secret[:shown] not in redacted(word).strip().removeprefix(before.strip())
    argv = ["a" * (ARGV_MOST // 5 - 1)] * 4
    argv.append(" " * (ARGV_MOST - sum(len(a) + 1 for a in argv) - len(before) - shown) + before)
    argv[-1] += secret
    last = without_secrets(argv)[-1]
    assert secret[:shown] not in last.strip().removeprefix(before.strip())


def test_a_flag_that_is_too_long_to_be_told_hides_the_next_argument() -> None:
    assert command_line([f"--{'x' * WORD_MOST}token", "s3cret"], 10_000).endswith(HIDDEN)


@pytest.mark.parametrize("look", [clean, redacted, lambda text: command_line([text]), command_line])
@pytest.mark.parametrize(
    "period",
    [
        *('"', "'", "\\", '\\"', "eyJ", "eyJ-", "key=", "key", "a=", "token: ", "--token ", "://"),
        *("hf_", "sk- ", "\0", "\n", " ", "[{", "pass='", 'pw="', "Bearer ", "\u202e", "a-", "é"),
    ],
)
def test_a_long_text_of_any_kind_is_looked_at_in_no_time(
    look: Callable[[str], str], period: str
) -> None:
    with takes_at_most(1.0):
        for size in (64 * 1024, 1024 * 1024):
            look(period * (size // len(period)) + "key")


def test_many_arguments_are_looked_at_in_no_time() -> None:
    with takes_at_most(1.0):
        for argv in ([""] * 1_000_000, ["token="] * 1_000_000, ['"' * 8000 + "key"] * 1000):
            assert len(command_line(argv)) <= 1024
            assert sum(map(len, without_secrets(argv))) <= 2 * ARGV_MOST


def test_control_characters_cannot_reach_the_terminal() -> None:
    assert clean("a\x1b[31mb\nc\x07\u202ed\udc80e") == "a [31mb c d e"


@given(st.text(), st.integers(0, 50))
def test_clean_text_is_printable_and_never_longer_than_asked(text: str, most: int) -> None:
    found = clean(text, most)
    assert len(found) <= most
    assert found.isprintable()
    found.encode("utf-8")


def test_a_number_that_no_kernel_has_is_none() -> None:
    assert (whole_number("0"), whole_number("18446744073709551615")) == (0, 2**64 - 1)
    for text in ("", "-1", "1.5", "²", "٣", "9" * 21, "9" * 10_000, "1 "):
        assert whole_number(text) is None
