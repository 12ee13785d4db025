"""The web configuration file: what it refuses, in a sentence without secrets; and who gets in."""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from http import HTTPStatus
from pathlib import Path

import bcrypt
import pytest
from support.certificates import certificate
from support.requirements import needs
from support.scrapers import basic

from tpusmi.configuration_file import FILE_BYTES, ConfigurationError
from tpusmi.exporter import guards as guards_module
from tpusmi.exporter.guards import Guards
from tpusmi.exporter.web_config import read_web_config

PASSWORD = "correct horse: battery staple ü"
SALT = b"$2b$04$" + b"abcdefghijklmnopqrstuu"
"""The same for each process of a test run: the hash is in the names of tests."""
HASH = bcrypt.hashpw(PASSWORD.encode(), SALT).decode()
AS_GO_WRITES = HASH.replace("$2b$", "$2y$")


def written(directory: Path, text: str) -> str:
    path = directory / "web.yml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def answers(guards: Guards, *headers: str | None, peer: str = "192.0.2.1") -> list[object]:
    """Why each of these headers is refused, one after the other."""

    async def ask() -> list[object]:
        return [await guards.refusal(header, peer) for header in headers]

    return asyncio.run(ask())


# -- the file


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1, 2]", "it must be a mapping"),
        ("a: b: c: hunter2", "is not YAML in line 1"),
        ("{" * 1500, "is not YAML"),
        ("rate_limit: {burst: 3}", "'rate_limit' is not a key that tpusmi supports"),
        ("http_server_config: {headers: {X: y}}", "'headers' is not a key"),
        ("basic_auth_users: {ann: hunter2}", "the password of 'ann' is not a bcrypt hash"),
        (f"basic_auth_users: {{ann: {HASH.replace('$04$', '$31$')}}}", "costs more than 16"),
        (f"basic_auth_users: {{7: {HASH}}}", "a user must be a name"),
        (f"basic_auth_users: {{'a:b': {HASH}}}", "a user must be a name"),
        ("basic_auth_users: [hunter2]", "must be a mapping of users"),
        ("tls_server_config: {}", "needs cert_file and key_file"),
        ("tls_server_config: {cert_file: a, key_file: b}", "cannot be used: No such file"),
        ("tls_server_config: {cert_file: [a], key_file: b}", "cert_file must be a path"),
        ("tls_server_config: {cipher_suites: [X]}", "'cipher_suites' is not a key"),
        ("#" + "x" * FILE_BYTES, "is longer than"),
    ],
    ids=lambda text: text[:30],
)
def test_what_it_does_not_understand_is_refused(tmp_path: Path, text: str, why: str) -> None:
    """Ignoring it could let in clients that the file keeps out."""
    path = written(tmp_path, text)
    with pytest.raises(ConfigurationError) as refused:
        read_web_config(path)
    assert str(refused.value).startswith(f"{path}")
    assert why in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_file_that_is_not_there_is_told_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        read_web_config(str(tmp_path / "nothing"))


@needs("openssl")
@pytest.mark.parametrize(
    ("more", "why"),
    [
        ("min_version: TLS10", "min_version must be one of TLS12, TLS13"),
        ("client_auth_type: RequireAnyClientCert", "client_auth_type must be one of"),
        ("client_auth_type: RequireAndVerifyClientCert", "needs client_ca_file"),
        ("client_ca_file: web.yml", "cannot be used"),
        ("key_file: web.yml", "cannot be used"),
    ],
)
def test_a_certificate_is_used_as_the_file_says_or_not_at_all(
    tmp_path: Path, more: str, why: str
) -> None:
    certificate(tmp_path)
    head = "tls_server_config:\n  cert_file: tls.crt\n"
    key = "" if more.startswith("key_file") else "  key_file: tls.key\n"
    with pytest.raises(ConfigurationError, match=why):
        read_web_config(written(tmp_path, f"{head}{key}  {more}\n"))


def test_a_pipe_is_not_waited_for_in_place_of_a_certificate(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    text = "tls_server_config: {cert_file: pipe, key_file: pipe}"
    with pytest.raises(ConfigurationError, match="pipe cannot be used: not a regular file"):
        read_web_config(written(tmp_path, text))


@needs("openssl")
def test_paths_are_beside_the_file_and_old_versions_are_off(tmp_path: Path) -> None:
    certificate(tmp_path)
    path = written(tmp_path, "tls_server_config: {cert_file: tls.crt, key_file: tls.key}")
    found = read_web_config(path)
    assert found.context is not None
    assert found.context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert found.context.verify_mode == ssl.CERT_NONE
    assert found.files == (path, str(tmp_path / "tls.crt"), str(tmp_path / "tls.key"))
    path = written(
        tmp_path,
        "tls_server_config:\n  cert_file: tls.crt\n  key_file: tls.key\n"
        "  client_ca_file: tls.crt\n  min_version: TLS13\nhttp_server_config: {http2: true}\n",
    )
    found = read_web_config(path)
    assert found.context is not None
    assert found.context.minimum_version == ssl.TLSVersion.TLSv1_3
    assert found.context.verify_mode == ssl.CERT_REQUIRED


@pytest.mark.parametrize("text", ["", "{}", "# nothing", "basic_auth_users:"])
def test_an_empty_file_lets_all_in(tmp_path: Path, text: str) -> None:
    guards = Guards(written(tmp_path, text), print)
    assert (guards.has_tls, guards.has_users) == (False, False)
    assert answers(guards, None) == [None]


# -- passwords


@pytest.fixture
def guards(tmp_path: Path) -> Guards:
    return Guards(written(tmp_path, f"basic_auth_users: {{ann: {AS_GO_WRITES}}}"), print)


def test_only_the_right_password_gets_in(guards: Guards) -> None:
    wrong = (
        None, "", "Basic", "Basic !!!", "Bearer abc", basic("ann", ""), basic("ann", PASSWORD[:-1]),
        basic("bob", PASSWORD), basic("", PASSWORD), basic("ann", "a\0b"), basic("ann", "x" * 700),
        f"Basic {'A' * 100_000}", "Basic \udcff", basic("ann", HASH),
    )  # fmt: skip
    assert answers(guards, *wrong) == [HTTPStatus.UNAUTHORIZED] * len(wrong)
    assert answers(guards, basic("ann", PASSWORD), basic("ann", "x")) == [
        None, HTTPStatus.UNAUTHORIZED,
    ]  # fmt: skip


def test_a_right_password_is_checked_once(guards: Guards, monkeypatch: pytest.MonkeyPatch) -> None:
    checks = []
    fits = guards_module._fits
    monkeypatch.setattr(guards_module, "_fits", lambda *a: checks.append(a) or fits(*a))
    assert answers(guards, *[basic("ann", PASSWORD)] * 20) == [None] * 20
    assert len(checks) == 1
    assert PASSWORD.encode() not in b"".join(guards._right)


def test_an_unknown_user_takes_as_long_as_a_wrong_password(tmp_path: Path) -> None:
    slow = bcrypt.hashpw(b"x", bcrypt.gensalt(8)).decode()
    guards = Guards(written(tmp_path, f"basic_auth_users: {{ann: {slow}}}"), print)

    def least_s(user: str) -> float:
        times = []
        for number in range(10):
            began_s = time.process_time()  # of all threads, however busy the machine is
            answers(guards, basic(user, f"wrong {number}"))
            times.append(time.process_time() - began_s)
        return min(times)

    assert 0.5 < least_s("bob") / least_s("ann") < 2


def test_a_flood_of_wrong_passwords_keeps_no_known_client_out(guards: Guards) -> None:
    async def flood() -> tuple[list[object], object, object]:
        assert await guards.refusal(basic("ann", PASSWORD), "192.0.2.1") is None
        wrong = [
            asyncio.ensure_future(guards.refusal(basic("ann", f"{n}"), "192.0.2.66"))
            for n in range(500)
        ]
        await asyncio.sleep(0)
        known = await guards.refusal(basic("ann", PASSWORD), "192.0.2.1")
        other = await guards.refusal(basic("ann", "wrong"), "192.0.2.7")
        return await asyncio.gather(*wrong), known, other

    refused, known, other = asyncio.run(flood())
    assert known is None
    assert other == HTTPStatus.UNAUTHORIZED  # it was checked: another peer's flood is its own
    assert refused.count(HTTPStatus.TOO_MANY_REQUESTS) >= 500 - guards_module.CHECKS_MOST
    assert None not in refused


# -- changes while it runs


def test_a_changed_file_is_in_force_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards_module, "LOOK_AGAIN_S", 0.0)
    said: list[str] = []
    path = written(tmp_path, f"basic_auth_users: {{ann: {HASH}}}")
    guards = Guards(path, said.append)
    header = basic("ann", PASSWORD)
    assert answers(guards, header) == [None]
    written(tmp_path, f"basic_auth_users: {{bobby: {HASH}}}")
    assert answers(guards, header, basic("bobby", PASSWORD)) == [HTTPStatus.UNAUTHORIZED, None]
    assert said == []
    written(tmp_path, "basic_auth_users: {ann: hunter2}")
    assert answers(guards, basic("bobby", PASSWORD)) == [None]
    assert "stays in force" in said[0]
    assert "hunter2" not in said[0]
    Path(path).unlink()
    assert answers(guards, None) == [HTTPStatus.UNAUTHORIZED]


@pytest.mark.parametrize("text", ["", "{}", "# empty while an editor writes it"])
def test_a_file_without_passwords_needs_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(guards_module, "LOOK_AGAIN_S", 0.0)
    said: list[str] = []
    guards = Guards(written(tmp_path, f"basic_auth_users: {{ann: {HASH}}}"), said.append)
    written(tmp_path, text)
    assert answers(guards, None) == [HTTPStatus.UNAUTHORIZED]
    assert said[0].endswith("stays in force: only a restart turns passwords off")
    written(tmp_path, f"basic_auth_users: {{bobby: {HASH}}}")
    assert answers(guards, basic("bobby", PASSWORD)) == [None]


@needs("openssl")
def test_a_renewed_certificate_is_in_force_without_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards_module, "LOOK_AGAIN_S", 0.0)
    certificate(tmp_path)
    path = written(tmp_path, "tls_server_config: {cert_file: tls.crt, key_file: tls.key}")
    guards = Guards(path, print)
    before = guards.context()
    assert guards.context() is before
    certificate(tmp_path)
    assert guards.context() is not before
