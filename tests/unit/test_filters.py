"""The filter language of the process table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpusmi.report.filters import About, matcher, problem, user_of, with_user

MEASURED = {
    "ann": {"mxu": [57.5], "step": [0.5], "memory": [2.0**31], "steps/s": [2.0]},
    "bob": {"mxu": [12.0], "step": [0.7]},
}
ANN = About(
    41, "ann", (0, 1, 2, 3), False, "41 ann python train.py --batch=256 running live"
)._replace(values=lambda n: MEASURED["ann"].get(n, ()))
BOB = About(52, "Bob", (4, 7), True, "52 Bob python serve.py stale live")._replace(
    values=lambda n: MEASURED["bob"].get(n, ())
)
NOBODY = About(412, None, (), False, "412 tpu-info live")
ALL = {"ann": ANN, "bob": BOB, "nobody": NOBODY}


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("", "ann bob nobody"),
        ("python", "ann bob"),
        ("PYTHON Serve", "bob"),
        ("user=ann", "ann"),
        ("user=b", "bob"),
        ("USER=BOB", "bob"),
        ("user=", "ann bob nobody"),
        ("pid=41", "ann"),
        ("pid=41,52", "ann bob"),
        ("pid=40-60", "ann bob"),
        ("41", "ann nobody"),
        ("chip=3", "ann"),
        ("chip=2-5", "ann bob"),
        ("chip=7,0", "ann bob"),
        ("chip=5-6", ""),
        ("chip=7-", "bob"),
        ("chip=", "ann bob nobody"),
        ("chip=x", ""),
        ("batch=256", "ann"),
        ("stale", "bob"),
        ("!stale", "ann nobody"),
        ("!user=ann python", "bob"),
        ("!chip=0-3", "bob nobody"),
        ("!", "ann bob nobody"),
        ("!!stale", "bob"),
        ("python !stale pid=41", "ann"),
        ("~train.*256", "ann"),
        ("~^52|tpu-I", "bob nobody"),
        ("!~python", "nobody"),
        ("~(", "ann bob nobody"),
        ("~", "ann bob nobody"),
        ("mxu<30", "bob"),
        ("!mxu<30", "ann nobody"),
        ("MXU>=57.5%", "ann"),
        ("step>0.5s", "bob"),
        ("step<=500ms", "ann"),
        ("memory>1GiB python", "ann"),
        ("steps/s>1", "ann"),
        ("mxu<", "ann bob nobody"),
        ("foo<3", "ann bob nobody"),
        ("memory>1", "ann bob nobody"),
        ("2>&1", ""),
    ],
)
def test_every_word_must_be_true_of_a_process(text: str, who: str) -> None:
    passes = matcher(text)
    assert [name for name, about in ALL.items() if passes(about)] == who.split()


def test_a_word_about_staleness_is_not_found_in_a_command() -> None:
    assert not matcher("stale")(ANN._replace(text="python stale.py"))


_ALPHABET = st.one_of(
    st.sampled_from([*"!=-,~<>.* 0123456789", "chip=", "pid=", "user=", "mxu"]), st.text()
)


@given(st.lists(_ALPHABET).map("".join))
def test_any_text_is_a_filter(text: str) -> None:
    passes = matcher(text)
    assert {passes(about) for about in ALL.values()} <= {True, False}


@given(st.text("abAB0", min_size=1))
def test_a_word_and_its_opposite_share_the_processes(word: str) -> None:
    for about in ALL.values():
        assert matcher(word)(about) != matcher(f"!{word}")(about)


@pytest.mark.parametrize("text", ["!", "!~", "!user=", "!USER=", "!pid=", "!chip=", "!!!"])
def test_the_beginning_of_an_opposite_hides_nothing(text: str) -> None:
    assert all(map(matcher(text), ALL.values()))


def test_no_number_of_opposites_is_too_large() -> None:
    for about in ALL.values():
        assert matcher("!" * 5000 + "zzz")(about) != matcher("!" * 5001 + "zzz")(about)
    assert problem("!" * 5000 + "~(").startswith("~(")


def test_a_number_that_no_process_can_have_is_a_text() -> None:
    assert not matcher("pid=" + "9" * 5000)(ANN)


def test_the_user_of_a_filter_is_changed_and_the_rest_stays() -> None:
    assert user_of("stale user=ann x") == "ann"
    assert user_of("stale !user=ann") == ""
    assert with_user("stale user=ann x", "bob") == "user=bob stale x"
    assert with_user("user=ann stale", "") == "stale"
    assert with_user("", " bob ") == "user=bob"
    assert with_user("!user=ann", "bob") == "user=bob !user=ann"


@given(st.text())
def test_whatever_is_typed_as_a_user_is_the_user_asked_for(name: str) -> None:
    assert user_of(with_user("stale", name)) == "".join(name.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train mxu<30 ~v2 chip=3", ""),
        ("mxv<30", "no column mxv; did you mean mxu?"),
        ("zzzz<30", "columns are memory, steps/s, step, p95"),
        ("mxu<", "mxu< needs a number: 30 or 30%"),
        ("step>fast", "step> needs a number: 0.5s, 90ms, 5min"),
        ("step>3GiB", "step> needs a unit: 0.5s, 90ms, 5min"),
        ("memory>10", "memory> needs a unit: 10GiB, 500MiB"),
        ("memory>0", ""),
        ("!stale !mxu<", "mxu< needs a number"),
        ("a ~b( c", "~b(: ( is not supported"),
    ],
)
def test_a_mistake_is_said_while_it_is_typed(text: str, message: str) -> None:
    assert message in problem(text)
    assert bool(problem(text)) is bool(message)


@given(st.lists(_ALPHABET | st.sampled_from("~<>"), max_size=20).map("".join))
def test_a_word_with_a_mistake_excludes_nothing(text: str) -> None:
    if problem(text):
        rest = " ".join(word for word in text.split() if not problem(word))
        for about in ALL.values():
            assert matcher(text)(about) is matcher(rest)(about)
