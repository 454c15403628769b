"""`tertulia serve` as a program: starting, serving next to other commands, stopping."""

import signal
import socket
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import httpx
import pytest

from tertulia.app.serving.listening import address_of
from tests.cli.support import PASSWORD, Place
from tests.tls import unverified, write_certificate


def signed_in(address: str, account: dict[str, Any]) -> httpx.Client:
    return httpx.Client(
        base_url=f"{address}/api/v1",
        auth=(account["email"], account["api_key"]),
        timeout=60,
    )


def accepts(host: str, port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex((host, port)) == 0


def test_empty_directory_shows_the_setup_address(place: Place) -> None:
    with place.program_from_nothing("serve", "--port", "0") as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "waiting at http://" in line, process.communicate()
        address = line.split()[-1]
        assert httpx.get(f"{address}/health").status_code == 200
        said = "".join(process.stdout.readline() for _ in range(6))
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert f"{address}/setup?code=" in said
    assert "tertulia init" in said
    assert "--demo" in said
    assert "Traceback" not in errors


def test_port_in_use_is_reported_in_one_sentence(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    place.create_organization()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = place.run("serve", "--port", port)
    assert result.exit_code == 1
    assert f"Port {port} of 127.0.0.1 is in use" in result.stderr


def test_invalid_host_is_reported_in_one_sentence(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    place.create_organization()
    result = place.run("serve", "--port", "0", "--host", "no host")
    assert result.exit_code == 1
    assert result.stderr.startswith("Can't listen on no host")


@pytest.mark.parametrize(
    ("family", "bound", "shown"),
    [
        (socket.AF_INET, "127.0.0.1", "http://127.0.0.1:"),
        (socket.AF_INET, "0.0.0.0", "http://127.0.0.1:"),
        (socket.AF_INET6, "::1", "http://[::1]:"),
        (socket.AF_INET6, "::", "http://[::1]:"),
    ],
)
def test_printed_address_is_reachable_from_this_machine(
    family: socket.AddressFamily, bound: str, shown: str
) -> None:
    with socket.socket(family) as listener:
        try:
            listener.bind((bound, 0))
        except OSError:
            pytest.skip("this machine has no such address")
        assert address_of(listener) == f"{shown}{listener.getsockname()[1]}"


def test_wrong_secret_is_reported_before_serving(place: Place) -> None:
    place.create_organization()
    (place.data_dir / "secret").write_text("another\n")
    with place.program("serve", "--port", "0") as process:
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors.startswith("The secret isn't the one")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_waiting_poll_is_answered_when_the_server_stops(
    place: Place, number: signal.Signals
) -> None:
    owner = place.create_organization()
    with (
        place.serving() as (process, address),
        signed_in(address, owner) as waiting,
        signed_in(address, owner) as other,
        ThreadPoolExecutor(1) as threads,
    ):
        queue = waiting.post("/register").json()
        parameters = {name: queue[name] for name in ("queue_id", "last_event_id")}
        # The second poll ends the first one, and waits.
        first = threads.submit(waiting.get, "/events", params=parameters)
        with ThreadPoolExecutor(1) as more:
            second = more.submit(other.get, "/events", params=parameters)
            assert wait((first, second), timeout=60, return_when=FIRST_COMPLETED).done
            process.send_signal(number)
            assert second.result(timeout=60).json()["events"] == []
            assert first.result(timeout=60).json()["events"] == []
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "Traceback" not in errors


def test_second_signal_stops_immediately(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    place.create_organization()
    with place.serving() as (process, address):
        host, port = address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as unfinished:
            unfinished.sendall(
                b"POST /api/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
            )
            httpx.get(f"{address}/health")
            process.terminate()
            # New connections are refused, and an unfinished request delays the end.
            while accepts(host, int(port)):
                assert process.poll() is None
            assert process.poll() is None
            process.terminate()
            assert process.wait(timeout=60) == 128 + signal.SIGTERM


def test_acknowledged_changes_survive_a_stop(place: Place) -> None:
    owner = place.create_organization()
    message = {"type": "channel", "to": "general", "topic": "t", "content": "kept"}
    with place.serving() as (process, address), signed_in(address, owner) as ann:
        sent = ann.post("/messages", data=message).json()["id"]
        queue = ann.post("/register").json()
        process.terminate()
        process.communicate(timeout=60)
        assert process.returncode == 0
    with place.serving() as (_, address), signed_in(address, owner) as ann:
        fetched = ann.get(f"/messages/{sent}", params={"apply_markdown": "false"}).json()
        assert fetched["message"]["content"] == "kept"
        parameters = {name: queue[name] for name in ("queue_id", "last_event_id")}
        events = ann.get("/events", params={**parameters, "dont_block": "true"}).json()
        assert events["result"] == "success"


def test_users_created_while_serving_can_sign_in(place: Place) -> None:
    owner = place.create_organization()
    with place.serving() as (_, address), signed_in(address, owner) as ann:
        ben = place.add("ben")
        with httpx.Client(base_url=f"{address}/api/v1", timeout=60) as nobody:
            form = {"username": ben["email"], "password": PASSWORD}
            # The server notices within seconds.
            for _ in range(500):
                reply = nobody.post("/fetch_api_key", data=form)
                if reply.status_code == 200:
                    break
        assert reply.json()["api_key"] == ben["api_key"]
        with signed_in(address, ben) as client:
            queue = client.post("/register").json()
            message = {"type": "channel", "to": "general", "topic": "t", "content": "hello"}
            assert ann.post("/messages", data=message).status_code == 200
            parameters = {name: queue[name] for name in ("queue_id", "last_event_id")}
            (event,) = client.get("/events", params=parameters).json()["events"]
            assert event["message"]["sender_id"] == owner["user_id"]
    assert place.run("check").exit_code == 0


def test_log_lines_have_the_request_but_no_secrets(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    owner = place.create_organization()
    with place.serving() as (process, address), signed_in(address, owner) as ann:
        message = {"type": "channel", "to": "general", "topic": "t", "content": "between us"}
        assert ann.post("/messages", data=message).status_code == 200
        form = {"username": owner["email"], "password": PASSWORD}
        assert ann.post("/fetch_api_key", data=form).status_code == 200
        process.terminate()
        _, lines = process.communicate(timeout=60)
    assert f"method=POST path=/api/v1/messages user={owner['user_id']} status=200" in lines
    for private in ("between us", PASSWORD, owner["api_key"], owner["email"]):
        assert private not in lines


def test_a_silent_tls_client_does_not_delay_the_end(tmp_path: Path) -> None:
    """TLS waits for the client's goodbye, which this client doesn't send."""
    place = Place(tmp_path / "data")
    place.create_organization()
    certificate, key = write_certificate(tmp_path)
    flags = ("--port", "0", "--tls-cert", str(certificate), "--tls-key", str(key))
    with place.program_from_nothing("serve", *flags) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            unverified().wrap_socket(plain, server_hostname="localhost") as client,
        ):
            client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 200")
            process.terminate()
            _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "exceeded" not in said  # What uvicorn logs when it gives up waiting.
