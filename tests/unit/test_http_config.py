"""The file of `--http-config`: what it refuses, what is sent, and that no secret is shown."""

from __future__ import annotations

import base64
import os
import ssl
import subprocess
import threading
import time
import traceback
from pathlib import Path

import pytest
from support.certificates import certificate
from support.requirements import needs
from support.scrapers import basic

from tpusmi import configuration_file
from tpusmi.configuration_file import FILE_BYTES, ConfigurationError
from tpusmi.fleet.http.http_config import HttpConfig, read_http_config

SECRET = "hunter2-ü:%"


def written(directory: Path, text: str, mode: int = 0o600) -> str:
    path = directory / "http.yml"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return str(path)


def config(directory: Path, text: str) -> HttpConfig:
    return read_http_config(written(directory, text))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[1, 2]", "it must be a mapping"),
        ("a: b: c: hunter2", "is not YAML in line 1"),
        ("{" * 1500, "is not YAML"),
        ("basic_auth: !!bool hunter2", "is not YAML"),
        ("basic_auth: !!timestamp hunter2", "is not YAML"),
        ("basic_auth: !!float ''", "is not YAML"),
        ("oauth2: {client_id: hunter2}", "'oauth2' is not a key that tpusmi supports"),
        ("basic_auth: [hunter2]", "basic_auth must be a mapping"),
        ("basic_auth: {user: a}", "'user' is not a key"),
        ("basic_auth: {username: [a]}", "username must be a text"),
        ("basic_auth: {username: a, password: 17}", "password must be a text"),
        ("basic_auth: {username: a, password: hunter2, password_file: x}", "only one of password"),
        ('basic_auth: {username: a, password: "hunter2\\r\\nX: y"}', "characters that cannot be"),
        ("basic_auth: {username: a, password_file: nothing}", "cannot be read: No such file"),
        ("basic_auth: {username: a, password_file: .}", "cannot be read: Is a directory"),
        ("bearer_token: hunter2\nbasic_auth: {username: a}", "only one of basic_auth and bearer"),
        ("authorization: {type: Basic, credentials: hunter2}", "and not Basic"),
        ('authorization: {type: "A B", credentials: hunter2}', "must be one word"),
        ("http_headers: {Cookie: {values: [hunter2]}}", "http_headers cannot set Cookie"),
        ("http_headers: {'a b': {values: [hunter2]}}", "a name that cannot be sent"),
        ("http_headers: {A: {values: hunter2}}", "values of A must be a list"),
        ('http_headers: {A: {secrets: ["hunter2\\n"]}}', "A has characters"),
        ("http_headers: {A: {value: [hunter2]}}", "'value' is not a key"),
        ("follow_redirects: true", "tpusmi follows none"),
        ("enable_http2: 1", "must be true or false"),
        ("tls_config: {cert_file: a}", "needs both of cert_file and key_file"),
        ("tls_config: {cert_file: a, key_file: b}", "cannot be used: No such file"),
        ("tls_config: {ca_file: http.yml}", "cannot be used"),
        ("tls_config: {ca: nonsense}", "ca cannot be used"),
        ("tls_config: {ca: x, ca_file: y}", "only one of ca and ca_file"),
        ("tls_config: {key: hunter2}", "'key' is not a key"),
        ("tls_config: {min_version: TLS10}", "min_version must be one of TLS12, TLS13"),
        ("tls_config: {insecure_skip_verify: 'yes'}", "must be true or false"),
        ("no_proxy: a", "no_proxy needs proxy_url"),
        ("proxy_url: socks5://u:hunter2@h:1", "must be http://HOST:PORT"),
        ("proxy_url: http://u:hunter2@h:99999", "proxy_url is not the URL"),
        ("#" + "x" * FILE_BYTES, "is longer than"),
    ],
    ids=lambda text: text[:30],
)
def test_what_it_does_not_understand_is_refused(tmp_path: Path, text: str, why: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigurationError) as refused:
        read_http_config(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert why in str(refused.value)
    assert "hunter2" not in "".join(traceback.format_exception(refused.value))


@pytest.mark.parametrize("text", ["ca_file: pipe", "cert_file: pipe, key_file: pipe"])
def test_a_pipe_is_not_waited_for_in_place_of_a_certificate(tmp_path: Path, text: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match=r"pipe cannot be used: not a regular file$"):
        config(tmp_path, f"tls_config: {{{text}}}")


@pytest.mark.parametrize("text", ["", "{}", "# nothing", "follow_redirects: false"])
def test_an_empty_file_sends_no_credentials(tmp_path: Path, text: str) -> None:
    found = config(tmp_path, text)
    assert (found.headers(), found.has_secrets, found.server_name) == ([], False, None)
    context = found.context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_without_a_file_it_is_a_client_without_credentials() -> None:
    found = read_http_config(None)
    assert (found.headers(), found.warnings) == ([], ())


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        (f"basic_auth: {{username: ann, password: '{SECRET}'}}", [basic("ann", SECRET)]),
        ("basic_auth: {username: ann}", [basic("ann", "")]),
        ("basic_auth: {username_file: user, password_file: secret}", [basic("ann", SECRET)]),
        ("authorization: {credentials: abc}", ["Bearer abc"]),
        ("authorization: {type: Token, credentials_file: secret}", [f"Token {SECRET}"]),
        ("bearer_token: abc", ["Bearer abc"]),
        ("bearer_token_file: secret", [f"Bearer {SECRET}"]),
    ],
)
def test_credentials_are_sent_as_prometheus_sends_them(
    tmp_path: Path, text: str, headers: list[str]
) -> None:
    (tmp_path / "secret").write_text(f"{SECRET}\n", encoding="utf-8")
    (tmp_path / "user").write_text("ann\n")
    found = config(tmp_path, text)
    assert found.headers() == [("Authorization", value) for value in headers]
    assert found.has_secrets
    assert SECRET not in f"{found!r} {vars(found)!r}"


def test_headers_such_as_the_tenant_of_mimir_are_sent(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("abc\n")
    found = config(
        tmp_path,
        "http_headers:\n  X-Scope-OrgID: {values: [team-a]}\n  X-Key: {files: [secret]}\n"
        "  X-Two: {secrets: [a, b]}\n",
    )
    assert found.headers() == [
        ("X-Scope-OrgID", "team-a"), ("X-Key", "abc"), ("X-Two", "a"), ("X-Two", "b"),
    ]  # fmt: skip
    assert found.secrets() == ["abc", "a", "b"]
    assert not config(tmp_path, "http_headers: {X-Scope-OrgID: {values: [a]}}").has_secrets


def test_a_renewed_token_is_sent_without_a_restart(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old")
    found = config(tmp_path, "authorization: {credentials_file: token}")
    assert found.headers() == [("Authorization", "Bearer old")]
    (tmp_path / "token").write_text("new")
    assert found.headers() == [("Authorization", "Bearer new")]
    (tmp_path / "token").write_text("hunter2\nX: y")
    with pytest.raises(ConfigurationError, match="cannot be sent") as refused:
        found.headers()
    assert "hunter2" not in str(refused.value)
    (tmp_path / "token").unlink()
    with pytest.raises(ConfigurationError, match="token: cannot be read: No such file"):
        found.headers()


def test_a_pipe_is_not_waited_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration_file, "PIPE_S", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigurationError, match="pipe: takes too long to read"):
        config(tmp_path, "authorization: {credentials_file: pipe}")


def test_a_file_that_a_slow_program_writes_is_read_to_its_end() -> None:
    read_end, write_end = os.pipe()

    def write() -> None:
        with os.fdopen(write_end, "wb", buffering=0) as file:
            for part in (b"bearer_token:", b" abc"):
                time.sleep(0.1)
                file.write(part)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        found = read_http_config(f"/dev/fd/{read_end}")
    finally:
        writing.join()
        os.close(read_end)
    assert found.headers() == [("Authorization", "Bearer abc")]


def test_a_pipe_that_stays_empty_is_not_taken_for_a_file_without_credentials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(configuration_file, "PIPE_S", 0.1)
    read_end, write_end = os.pipe()
    try:
        with pytest.raises(ConfigurationError, match="takes too long to read"):
            read_http_config(f"/dev/fd/{read_end}")
        os.close(write_end)
        monkeypatch.setattr(configuration_file, "PIPE_S", 60.0)
        with pytest.raises(ConfigurationError, match="is a pipe that nothing is written to"):
            read_http_config(f"/dev/fd/{read_end}")
    finally:
        os.close(read_end)


@pytest.mark.parametrize(("mode", "warns"), [(0o600, False), (0o640, False), (0o644, True)])
def test_a_file_that_all_users_can_read_brings_a_warning(
    tmp_path: Path, mode: int, warns: bool
) -> None:
    path = written(tmp_path, "bearer_token: abc", mode)
    sentence = f"all users of this machine can read {path}: chmod 600 {path}"
    assert read_http_config(path).warnings == ((sentence,) if warns else ())


@pytest.mark.parametrize(
    ("text", "open_files"),
    [
        ("basic_auth: {username: ann, password: abc}", ["http.yml"]),
        ("basic_auth: {username: ann, password_file: open}", ["open"]),
        ("basic_auth: {username_file: open, password_file: private}", []),
        ("authorization: {credentials: abc}", ["http.yml"]),
        ("authorization: {credentials_file: open}", ["open"]),
        ("bearer_token_file: open", ["open"]),
        ("http_headers: {X-Team: {values: [a]}}", []),
        ("http_headers: {X-Key: {secrets: [a]}}", ["http.yml"]),
        ("http_headers: {X-Key: {files: [open, private]}}", ["open"]),
        ("proxy_url: http://ann:abc@proxy:3128", ["http.yml"]),
        ("proxy_url: http://proxy:3128", []),
        ("http_headers:", []),
        ("", []),
    ],
)
def test_the_warning_is_about_the_files_that_have_the_secrets(
    tmp_path: Path, text: str, open_files: list[str]
) -> None:
    for name, mode in (("open", 0o644), ("private", 0o600)):
        (tmp_path / name).write_text("abc")
        (tmp_path / name).chmod(mode)
    path = tmp_path / "http.yml"
    path.write_text(text)
    path.chmod(0o644)
    warnings = read_http_config(str(path)).warnings
    assert [one.rpartition("/")[2] for one in warnings] == open_files


@needs("openssl")
def test_certificates_are_beside_the_file_and_renewed_ones_are_used(tmp_path: Path) -> None:
    certificate(tmp_path)
    found = config(
        tmp_path,
        "tls_config: {ca_file: tls.crt, cert_file: tls.crt, key_file: tls.key, server_name: a.b, "
        "min_version: TLS13}",
    )
    before = found.context()
    assert found.context() is before
    assert before.minimum_version == ssl.TLSVersion.TLSv1_3
    assert before.cert_store_stats()["x509"] == 1
    assert found.server_name == "a.b"
    certificate(tmp_path)
    assert found.context() is not before
    skip = config(tmp_path, "tls_config: {insecure_skip_verify: true}").context()
    assert (skip.verify_mode, skip.check_hostname) == (ssl.CERT_NONE, False)
    pem = (tmp_path / "tls.crt").read_text().replace("\n", "\n    ")
    inline = config(tmp_path, f"tls_config:\n  ca: |\n    {pem}\n")
    assert inline.context().cert_store_stats()["x509"] == 1


@needs("promtool")
@pytest.mark.parametrize(
    "text",
    [
        "basic_auth: {username: a, password: b}",
        "authorization: {type: Bearer, credentials: b}",
        "tls_config: {server_name: a, insecure_skip_verify: true, min_version: TLS12}",
        "proxy_url: http://a:1\nfollow_redirects: false\nenable_http2: true",
        "bearer_token: a",
    ],
)
def test_prometheus_reads_the_same_keys(tmp_path: Path, text: str) -> None:
    read_http_config(written(tmp_path, text))
    path = tmp_path / "prometheus.yml"
    own = text.replace("\n", "\n    ")
    path.write_text(f"scrape_configs:\n  - job_name: a\n    {own}\n")
    command = ["promtool", "check", "config", "--syntax-only", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


# -- proxies


def test_the_environments_proxy_is_used_as_curl_uses_it(no_proxies: pytest.MonkeyPatch) -> None:
    proxies = read_http_config(None).proxies
    assert proxies("http", "prom.example", 80) is None
    no_proxies.setenv("http_proxy", f"http://ann:{SECRET.replace('%', '%25')}@proxy.example:3128/")
    no_proxies.setenv("HTTPS_PROXY", "other.example:8080")
    found = proxies("http", "prom.example", 80)
    assert found is not None
    assert (found.host, found.port) == ("proxy.example", 3128)
    assert found.secret == (basic("ann", SECRET),)
    assert "Basic" not in f"{found} {found!r}"
    assert f"{proxies('https', 'prom.example', 443)}" == "Proxy(other.example:8080)"
    for here in ("localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"):
        assert proxies("http", here, 9090) is None
    no_proxies.setenv("http_proxy", "socks5://ann:hunter2@h:1")
    with pytest.raises(ConfigurationError, match="http_proxy must be http") as refused:
        proxies("http", "prom.example", 80)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("password", ["s\udcffcret", "s%ffcret"])
def test_a_proxys_password_may_have_any_bytes(
    no_proxies: pytest.MonkeyPatch, password: str
) -> None:
    no_proxies.setenv("http_proxy", f"http://ann:{password}@p:1")
    proxy = read_http_config(None).proxies("http", "a.b", 80)
    assert proxy is not None
    assert base64.b64decode(proxy.secret[0].partition(" ")[2]) == b"ann:s\xffcret"


def test_a_proxy_whose_name_is_none_is_a_sentence(no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("http_proxy", "http://ann:hunter2@p\udcff:1")
    with pytest.raises(ConfigurationError, match="http_proxy must be http"):
        read_http_config(None).proxies("http", "a.b", 80)


@pytest.mark.parametrize(
    ("entry", "host", "port", "is_left_out"),
    [
        ("*", "a.b", 80, True),
        ("b", "a.b", 80, True),
        (".b", "a.b", 80, True),
        ("*.b", "a.b", 80, True),
        ("b", "ab", 80, False),
        ("x, a.b:80", "A.B", 80, True),
        ("a.b:81", "a.b", 80, False),
        ("10.0.0.0/8", "10.1.2.3", 80, True),
        ("10.0.0.0/8", "11.1.2.3", 80, False),
        ("10.0.0.0/99", "10.1.2.3", 80, False),
        ("fd00::/8", "fd00::1", 80, True),
        ("[fd00::1]:80", "fd00::1", 80, True),
        ("fd00::1", "fd00::1", 80, True),
        ("", "a.b", 80, False),
    ],
)
def test_no_proxy_names_those_that_are_asked_directly(
    tmp_path: Path, entry: str, host: str, port: int, is_left_out: bool
) -> None:
    found = config(tmp_path, f"proxy_url: http://p:1\nno_proxy: '{entry}'")
    assert (found.proxies("http", host, port) is None) == is_left_out


def test_the_file_says_which_proxy(tmp_path: Path, no_proxies: pytest.MonkeyPatch) -> None:
    no_proxies.setenv("http_proxy", "http://environment:1")
    of_file = config(tmp_path, "proxy_url: http://file:2").proxies("http", "a.b", 80)
    assert of_file is not None
    assert of_file.host == "file"
    none = config(tmp_path, "proxy_from_environment: false")
    assert none.proxies("http", "a.b", 80) is None
