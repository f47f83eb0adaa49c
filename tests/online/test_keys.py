"""API keys, TLS, limits on heads and clients: who may ask, on real servers."""

import base64
import contextlib
import hashlib
import http.client
import socket
import ssl
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from parity.errors import ConfigError
from parity_online.keys import is_open, new_key, read_keys, require_local_host, require_same_site
from parity_online.problems import ProblemError
from parity_online.process import ServerProcess
from tests.online.serving import LINEAR, PROBE, Probe, ask, until

PATH = "/predictions/probe"


def test_a_key_is_known_by_its_hash_only(tmp_path: Path):
    key, line = new_key("team", "infer")
    other, manage = new_key("ops", "manage")
    file = tmp_path / "keys"
    file.write_text(f"# ours\n{line}   # the team's\n\n{manage}\n")
    assert key not in file.read_text()
    keys = read_keys(file)
    assert keys.require([(b"authorization", b"Bearer " + key.encode())], "infer") == "team"
    assert keys.require([(b"x-api-key", key.encode())], "infer") == "team"
    basic = base64.b64encode(b"anybody:" + key.encode())
    assert keys.require([(b"authorization", b"Basic " + basic)], "infer") == "team"
    assert keys.require([(b"x-api-key", other.encode())], "manage") == "ops"
    for headers, status in (
        ([], 401),
        ([(b"x-api-key", b"")], 401),
        ([(b"x-api-key", hashlib.sha256(key.encode()).hexdigest().encode())], 401),
        ([(b"authorization", b"Basic !!")], 401),
        ([(b"authorization", b"Digest x")], 401),
        ([(b"x-api-key", other.encode())], 403),
    ):
        with pytest.raises(ProblemError) as caught:
            keys.require(headers, "infer")
        assert caught.value.status == status
        assert key not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no key in it"),
        ("infer me secret-in-plain-text", "line 1: expected SCOPE NAME"),
        ("admin me sha256:" + "0" * 64, "scope 'admin'"),
        ("infer me sha256:" + "0" * 63, "64 digits"),
    ],
)
def test_a_file_of_keys_that_is_wrong_is_told_without_its_secrets(tmp_path: Path, text: str, said: str):
    (tmp_path / "keys").write_text(text)
    with pytest.raises(ConfigError, match=said) as caught:
        read_keys(tmp_path / "keys")
    assert "secret" not in str(caught.value)


def test_probes_need_no_key_and_nothing_else_is_open():
    for path in (
        "/ping",
        "/v2/health/live",
        "/v2/health/ready",
        "/v2/models/a/ready",
        "/v2/models/a/versions/1/ready",
    ):
        assert is_open(path)
    for path in (
        "/",
        "/metrics",
        "/v2",
        "/v2/models/a",
        "/v2/models/a/infer",
        "/v2/models/a/b/c/ready",
        "/ping/x",
    ):
        assert not is_open(path)


def test_the_module_makes_a_key():
    made = subprocess.run(
        [sys.executable, "-m", "parity_online.keys", "me", "--manage"], capture_output=True, text=True
    )
    assert made.returncode == 0
    assert made.stdout.startswith("manage me sha256:")
    key = made.stderr.splitlines()[0].rpartition(" ")[2]
    assert hashlib.sha256(key.encode()).hexdigest() in made.stdout
    assert subprocess.run([sys.executable, "-m", "parity_online.keys"], capture_output=True).returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize("http", ["fast", "asgi"])
def test_who_has_no_key_learns_nothing_but_health(tmp_path: Path, http: str):
    key, line = new_key("team")
    ops, manage = new_key("ops", "manage")
    (tmp_path / "keys").write_text(f"{line}\n{manage}\n")
    arguments = [PROBE, "--api-keys", str(tmp_path / "keys"), "--management", "--http", http]
    with ServerProcess(arguments) as server:
        url = server.url

        def status(verb: str, path: str, secret: str | None, body: object = None) -> int:
            headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
            return ask(url, verb, path, body, headers)[0]

        row = {"id": 1, "x": 2}
        assert status("GET", "/v2/health/ready", None) == status("GET", "/ping", None) == 200
        for path in ("/metrics", "/v2/models", "/openapi.json", "/docs", "/nowhere"):
            assert status("GET", path, None) == status("GET", path, "wrong") == 401
        assert [status("POST", PATH, secret, row) for secret in (None, "wrong", ops, key)] == [
            401,
            401,
            403,
            200,
        ]
        big = {"id": 1, "wait": "x" * 200_000}
        assert [status("POST", PATH, secret, big) for secret in (None, key)] == [401, 200]
        assert [status("POST", "/v2/repository/index", secret) for secret in (None, key, ops)] == [
            401,
            403,
            200,
        ]
        _, headers, answer = ask(url, "POST", PATH, row)
        assert headers["www-authenticate"].startswith("Bearer")
        assert "Authorization: Bearer" in answer["error"]
        assert ask(url, "GET", "/metrics", headers={"X-API-Key": key})[0] == 200
        _, headers, answer = ask(url, "GET", "/models", None, {"X-Request-Id": "asked-1"})
        assert headers["www-authenticate"].startswith("Bearer")
        assert (answer["code"], answer["id"]) == (401, "asked-1")
        (told,) = [line for line in server.log().splitlines() if " id=asked-1 " in line]
        assert " method=GET path=/models status=401 " in told
        assert key not in server.log()


@pytest.mark.slow
def test_a_client_may_have_so_many_requests_in_flight_and_others_are_not_bothered(tmp_path: Path):
    key, line = new_key("greedy")
    other, line2 = new_key("modest")
    (tmp_path / "keys").write_text(f"{line}\n{line2}\n")
    arguments = [PROBE, "--client-limit", "2", "--api-keys", str(tmp_path / "keys"), "--slot", "thread"]
    with ServerProcess(arguments) as server, ThreadPoolExecutor(8) as pool:
        probe = Probe(server, tmp_path)
        gate = probe.gate()

        def send(secret: str, row: int, wait: str = ""):
            return pool.submit(probe.ask, PATH, {"id": row, "x": row, "wait": wait}, {"X-API-Key": secret})

        def metric(name: str) -> float:
            text = ask(server.url, "GET", "/metrics", headers={"X-API-Key": other})[2].decode()
            return sum(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(name))

        held = [send(key, 1, str(gate))]
        until(lambda: metric("parity_batch_rows_count") == 1)
        held.append(send(key, 2))
        until(lambda: metric("parity_queue_rows") == 1)
        status, headers, answer = send(key, 3).result()
        assert (status, headers["retry-after"]) == (429, "1")
        assert "'greedy' has 2 requests in flight" in answer["error"]
        held.append(send(other, 4))
        until(lambda: metric("parity_queue_rows") == 2)
        gate.touch()
        assert [future.result()[2]["y"] for future in held] == [3.0, 5.0, 9.0]
        assert send(key, 5).result()[0] == 200


@pytest.mark.slow
def test_high_requests_go_before_those_that_came_sooner(probe: Probe):
    gate = probe.gate()
    with ThreadPoolExecutor(32) as pool:
        before = probe.metric("parity_batch_rows_count", model="probe")
        held = pool.submit(probe.ask, PATH, {"id": 9000, "wait": str(gate)})
        until(lambda: probe.metric("parity_batch_rows_count", model="probe") > before)
        normal = [pool.submit(probe.ask, PATH, {"id": 9001 + n}) for n in range(8)]
        until(lambda: probe.metric("parity_queue_rows", model="probe") == 8)
        high = pool.submit(probe.ask, PATH, {"id": 9100}, {"X-Request-Priority": "high"})
        until(lambda: probe.metric("parity_queue_rows", model="probe") == 9)
        gate.touch()
        assert {future.result()[0] for future in (held, high, *normal)} == {200}
    ran = [int(line) for line in probe.ran_file.read_text().split() if int(line) >= 9000]
    assert ran[1] == 9100
    assert set(ran[2:]) == {9001 + n for n in range(8)}
    status, _, answer = probe.ask(PATH, {"id": 1}, {"X-Request-Priority": "urgent"})
    assert status == 400
    assert "high or normal" in answer["error"]


@pytest.mark.slow
def test_a_head_that_is_too_large_is_431_and_the_server_lives(probe: Probe):
    host, _, port = urlsplit(probe.server.url).netloc.partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(b"GET /v2 HTTP/1.1\r\nHost: x\r\n")
        sent = b""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(20):
                connection.sendall(b"X-Filler: " + b"x" * 8000 + b"\r\n")
            sent = connection.recv(65536)
    assert sent == b"" or sent.startswith(b"HTTP/1.1 431")
    assert ask(probe.server.url, "GET", "/v2/health/live")[0] == 200


def test_health_takes_head_and_the_docs_need_nothing_from_elsewhere(probe: Probe):
    connection = http.client.HTTPConnection(urlsplit(probe.server.url).netloc, timeout=30)
    for path in ("/v2/health/live", "/v2/health/ready", "/ping", "/v2/models/probe/ready"):
        connection.request("HEAD", path)
        response = connection.getresponse()
        assert (response.status, response.read()) == (200, b"")
    connection.close()
    status, headers, page = ask(probe.server.url, "GET", "/docs")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    text = page.decode()
    assert "/predictions/probe" in text
    assert "src=" not in text
    assert "https://" not in text


@pytest.mark.slow
def test_https_is_spoken_with_a_certificate(certificate: Path):
    with ServerProcess([LINEAR, "--tls-cert", str(certificate)]) as server:
        assert server.url.startswith("https://127.0.0.1:")
        trusted = ssl.create_default_context(cafile=f"{certificate}.crt")
        connection = http.client.HTTPSConnection(urlsplit(server.url).netloc, timeout=30, context=trusted)
        body = b'{"features": [0, 0, 0, 0, 0, 0, 0, 1], "account": 1, "at": null}'
        connection.request("POST", "/predictions/linear", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        assert response.status == 200
        assert b'"account":1' in response.read()
        connection.close()


@pytest.mark.slow
def test_clients_show_a_certificate_where_they_must(certificate: Path):
    arguments = [LINEAR, "--tls-cert", str(certificate), "--tls-client-ca", f"{certificate}.crt"]
    with ServerProcess(arguments) as server:
        place = urlsplit(server.url).netloc
        bare = ssl.create_default_context(cafile=f"{certificate}.crt")
        with pytest.raises((OSError, http.client.HTTPException)):
            get(place, bare)
        bare.load_cert_chain(certificate)
        assert get(place, bare) == 200


def get(place: str, context: ssl.SSLContext) -> int:
    """The status of GET /v2."""
    connection = http.client.HTTPSConnection(place, timeout=30, context=context)
    with contextlib.closing(connection):
        connection.request("GET", "/v2")
        return connection.getresponse().status


@pytest.mark.slow
def test_an_address_beyond_loopback_is_warned_of():
    with ServerProcess([LINEAR, "--host", "0.0.0.0", "--management"]) as server:
        log = server.log()
    assert "event=not_loopback host=0.0.0.0" in log
    assert "--api-keys" in log
    assert "--tls-cert" in log
    assert "everybody may unload models" in log


def test_tls_files_that_are_not_there_are_told():
    from parity_online.settings import ServerSettings

    with pytest.raises(ConfigError, match="no such file"):
        ServerSettings(tls_cert=Path("nowhere.pem"))
    with pytest.raises(ConfigError, match="need --tls-cert"):
        ServerSettings(tls_key=Path(__file__))


STATUS_PAGE = ("/", "/status.json", "/form.json?name=linear")


@pytest.mark.parametrize(
    ("headers", "is_let_in"),
    [
        ({}, True),
        ({"host": "a:8000", "origin": "http://a:8000"}, True),
        ({"host": "a:8000", "origin": "http://evil.example"}, False),
        ({"host": "a:8000", "origin": "null"}, False),
        ({"host": "a", "origin": "https://front", "sec-fetch-site": "same-origin"}, True),
        ({"host": "a", "sec-fetch-site": "none"}, True),
        ({"host": "a", "sec-fetch-site": "cross-site"}, False),
        ({"host": "a", "origin": "http://a", "sec-fetch-site": "same-site"}, False),
    ],
)
def test_a_page_of_another_site_is_known(headers: dict[str, str], is_let_in: bool):
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    with contextlib.nullcontext() if is_let_in else pytest.raises(ProblemError, match="another site"):
        require_same_site(pairs)


@pytest.mark.parametrize(
    ("host", "is_let_in"),
    [
        ("localhost", True),
        ("LOCALHOST:8000", True),
        ("127.0.0.1:8000", True),
        ("127.9.9.9", True),
        ("[::1]:8000", True),
        ("api.localhost:8000", True),
        ("evil.example", False),
        ("evil.example:8000", False),
        ("localhost.evil.example:8000", False),
        ("10.0.0.7:8000", False),
        ("[fe80::1]:8000", False),
        ("localhost:8000@evil.example", False),
        ("localhost:evil.example", False),
        ("[::1]evil.example", False),
        ("localhost, evil.example", False),
        ("localhost/evil", False),
    ],
)
def test_a_site_that_calls_itself_by_our_address_is_known(host: str, is_let_in: bool):
    with contextlib.nullcontext() if is_let_in else pytest.raises(ProblemError, match="bound to loopback"):
        require_local_host([(b"host", host.encode())])


def test_of_two_hosts_none_is_let_in():
    with pytest.raises(ProblemError, match="'localhost, evil"):
        require_local_host([(b"host", b"localhost"), (b"accept", b"*/*"), (b"host", b"evil.example")])


@pytest.mark.slow
def test_a_site_that_calls_itself_by_our_address_manages_nothing_unless_it_has_a_key(tmp_path: Path):
    key, line = new_key("admin", "manage")
    (tmp_path / "keys").write_text(f"{line}\n")
    path, evil = (
        "/v2/repository/models/linear/unload",
        {"Host": "evil.example", "Sec-Fetch-Site": "same-origin"},
    )
    with ServerProcess([LINEAR, "--management", "--gate", "off"]) as server:
        status, _, answer = ask(server.url, "POST", path, b"", evil)
        assert (status, "'evil.example'" in answer["error"]) == (403, True)
        assert ask(server.url, "GET", "/v2/health/ready", headers=evil)[0] == 200
        for page in STATUS_PAGE:
            status, _, answer = ask(server.url, "GET", page, headers=evil)
            assert (status, "'evil.example'" in answer["error"]) == (403, True), page
            assert ask(server.url, "GET", page, headers={"Host": "localhost:8000"})[0] == 200, page
        assert ask(server.url, "POST", path, b"", {"Sec-Fetch-Site": "same-origin"})[0] == 200
    arguments = [LINEAR, "--management", "--gate", "off", "--api-keys", str(tmp_path / "keys")]
    with ServerProcess(arguments) as server:
        assert ask(server.url, "POST", path, b"", evil)[0] == 401
        assert ask(server.url, "POST", path, b"", {**evil, "X-API-Key": key})[0] == 200
        assert ask(server.url, "GET", "/status.json", headers=evil)[0] == 401, "a key is asked for instead"


@pytest.mark.slow
def test_the_status_page_of_a_server_that_others_reach_is_shown_under_any_name():
    with ServerProcess([LINEAR, "--gate", "off", "--host", "0.0.0.0"]) as server:
        url = server.url.replace("0.0.0.0", "127.0.0.1")
        for page in STATUS_PAGE:
            assert ask(url, "GET", page, headers={"Host": "models.example"})[0] == 200, page


@pytest.mark.slow
@pytest.mark.parametrize("http", ["fast", "asgi"])
def test_a_page_of_another_site_manages_nothing_and_who_has_no_key_learns_no_reason(
    tmp_path: Path, http: str
):
    key, line = new_key("team")
    ops, manage = new_key("ops", "manage")
    (tmp_path / "keys").write_text(f"{line}\n{manage}\n")
    arguments = [PROBE, "--api-keys", str(tmp_path / "keys"), "--management", "--http", http]
    with ServerProcess(arguments) as server:
        url, path = server.url, "/v2/repository/models/probe/unload"
        basic = {"Authorization": "Basic " + base64.b64encode(f"me:{ops}".encode()).decode()}
        evil = {"Origin": "http://evil.example", "Content-Type": "text/plain"}
        status, _, told = ask(url, "POST", path, b"{}", {**basic, **evil})
        assert (status, "another site" in told["error"]) == (403, True)
        assert ask(url, "GET", "/v2/health/ready")[0] == 200
        assert ask(url, "POST", path, b"{}", {**basic, "Origin": url})[0] == 200
        team = {"X-API-Key": key}
        until(lambda: ask(url, "GET", "/v2/models/probe/ready", None, team)[0] == 404)
        known = ask(url, "GET", "/v2/models/nowhere/ready", None, team)[2]["error"]
        unknown = ask(url, "GET", "/v2/models/nowhere/ready")[2]
        assert "nowhere" in known
        assert unknown["error"] == "no such model"


@pytest.mark.slow
def test_who_has_no_key_learns_not_why_a_model_is_not_ready(tmp_path: Path):
    key, line = new_key("team")
    (tmp_path / "keys").write_text(f"{line}\n")
    slow = tmp_path / "slow"
    slow.mkdir()
    source = Path(LINEAR, "handler.py").read_text()
    go = str(tmp_path / "go")
    wait = f"import pathlib, time\n\nwhile not pathlib.Path({go!r}).exists():\n    time.sleep(0.01)\n"
    load = "    def initialize(self, context: Context) -> None:\n"
    inner = "".join(f"        {text}\n" for text in wait.splitlines())
    (slow / "handler.py").write_text(source.replace(load, load + inner))
    arguments = [str(slow), "--api-keys", str(tmp_path / "keys")]
    with ServerProcess(arguments, wait_ready=False) as server:
        name = ask(server.url, "GET", "/v2/models", None, {"X-API-Key": key})[2]["models"][0]
        for path in ("/v2/health/ready", f"/v2/models/{name}/ready"):
            status, _, told = ask(server.url, "GET", path)
            assert status == 503
            assert "loaded" not in told["error"]
            assert "models" not in told
            status, _, told = ask(server.url, "GET", path, None, {"X-API-Key": key})
            assert (status, "it is being loaded" in told["error"]) == (503, True)
        (tmp_path / "go").touch()
