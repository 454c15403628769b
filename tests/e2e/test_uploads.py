"""Uploads to a real server: interrupted, large, and concurrent."""

import base64
import json
import re
from pathlib import Path

import httpx

from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok
from tests.e2e.raw_http import Response, connected
from tests.e2e.server import Account, Server, basic

MIB = 1024 * 1024
PIECE = "application/offset+octet-stream"


def head(method: str, path: str, account: Account, **headers: object) -> bytes:
    """A request without its body. Underscores in header names stand for hyphens."""
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: chat.test",
        f"Authorization: {basic(account)}",
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def tus(method: str, path: str, account: Account, **headers: object) -> bytes:
    return head(method, path, account, Tus_Resumable="1.0.0", **headers)


def ask(server: Server, data: bytes) -> Response:
    with connected(server) as connection:
        return connection.ask(data)


def create_upload(server: Server, account: Account, length: int) -> str:
    name = base64.b64encode(b"big.bin").decode()
    answer = ask(
        server,
        tus(
            "POST",
            "/api/v1/tus/",
            account,
            Upload_Length=length,
            Upload_Metadata=f"filename {name}",
            Content_Length=0,
        ),
    )
    assert answer.status == 201
    return answer.headers["location"]


def offset_of(server: Server, account: Account, where: str) -> int:
    return int(ask(server, tus("HEAD", where, account)).headers["upload-offset"])


def files(server: Server) -> list[Path]:
    return sorted(p for p in (server.data_dir / "files").rglob("*") if p.is_file())


def memory_of(server: Server) -> int:
    """The process's peak memory in bytes."""
    assert server.process is not None
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    match = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert match is not None
    return int(match[1]) * 1024


def opened(server: Server, account: Account, url: str) -> bytes:
    answer = httpx.get(server.url + url, auth=(account.email, account.api_key))
    assert answer.status_code == 200
    return answer.content


def test_an_upload_continues_after_the_server_was_killed(site: Site) -> None:
    server, ben = site.server, site.ben
    content = bytes(range(256)) * 4096 * 3
    where = create_upload(server, ben, len(content))
    first = content[:MIB]
    request = tus(
        "PATCH", where, ben, Upload_Offset=0, Content_Type=PIECE, Content_Length=len(first)
    )
    assert ask(server, request + first).status == 204
    # The server is killed in the middle of the next chunk.
    with connected(server) as connection:
        second = content[MIB:]
        connection.write(
            tus(
                "PATCH",
                where,
                ben,
                Upload_Offset=MIB,
                Content_Type=PIECE,
                Content_Length=len(second),
            )
        )
        connection.write(second[: MIB // 2])
        server.kill()
    server.start()
    offset = offset_of(server, ben, where)
    assert MIB <= offset <= MIB + MIB // 2
    rest = content[offset:]
    request = tus(
        "PATCH", where, ben, Upload_Offset=offset, Content_Type=PIECE, Content_Length=len(rest)
    )
    answer = ask(server, request + rest)
    assert answer.status == 200
    assert opened(server, ben, json.loads(answer.body)["url"]) == content


def test_bytes_received_before_a_disconnect_count(site: Site) -> None:
    server, ben = site.server, site.ben
    length, sent = 3 * MIB, MIB + MIB // 2
    where = create_upload(server, ben, length)
    with connected(server) as connection:
        connection.write(
            tus("PATCH", where, ben, Upload_Offset=0, Content_Type=PIECE, Content_Length=length)
            + b"x" * sent
        )
        server.wait(lambda: any(p.stat().st_size >= MIB for p in files(server)), "it arrives")
    server.wait_for_log("status=499")
    assert MIB <= offset_of(server, ben, where) <= sent


def test_resuming_an_upload_does_not_wait_for_a_dead_connection(site: Site) -> None:
    server, ben = site.server, site.ben
    where = create_upload(server, ben, 10)
    with connected(server) as dead:
        dead.write(
            tus("PATCH", where, ben, Upload_Offset=0, Content_Type=PIECE, Content_Length=10)
            + b"hello"
        )
        offset = offset_of(server, ben, where)
        assert offset in {0, 5}
        request = tus(
            "PATCH",
            where,
            ben,
            Upload_Offset=offset,
            Content_Type=PIECE,
            Content_Length=10 - offset,
        )
        answer = ask(server, request + b"helloworld"[offset:])
        # The first request may reach the server after the HEAD.
        assert answer.status in {200, 409}
    if answer.status == 200:
        assert opened(server, ben, json.loads(answer.body)["url"]) == b"helloworld"


def form(content: bytes) -> tuple[bytes, str]:
    start = b'--x\r\nContent-Disposition: form-data; name="f"; filename="f.bin"\r\n\r\n'
    return start + content + b"\r\n--x--\r\n", "multipart/form-data; boundary=x"


def test_a_client_that_disconnects_during_an_upload_leaves_no_file(site: Site) -> None:
    server, ben = site.server, site.ben
    body, kind = form(b"x" * MIB)
    request = head("POST", "/api/v1/user_uploads", ben, Content_Type=kind, Content_Length=len(body))
    with connected(server) as connection:
        connection.write(request + body[: MIB // 2])
        server.wait(lambda: len(files(server)) == 1, "the file arrives")
    server.wait(lambda: files(server) == [], "the file is gone")
    assert ask(server, request + body).status == 200


def test_a_large_upload_is_streamed_with_little_memory(sqlite_site: Site) -> None:
    server, ben = sqlite_site.server, sqlite_site.ben
    before = memory_of(server)
    body, kind = form(b"\xab" * (90 * MIB))
    answer = httpx.post(
        f"{server.url}/api/v1/user_uploads",
        content=body,
        headers={"Content-Type": kind},
        auth=(ben.email, ben.api_key),
        timeout=120,
    )
    assert answer.status_code == 200, answer.text
    url = answer.json()["url"]
    with httpx.stream("GET", server.url + url, auth=(ben.email, ben.api_key)) as download:
        assert sum(len(chunk) for chunk in download.iter_bytes()) == 90 * MIB
    assert memory_of(server) - before < 45 * MIB


def test_an_oversized_body_is_read_and_refused(sqlite_site: Site) -> None:
    server, ben = sqlite_site.server, sqlite_site.ben
    body, kind = form(b"\xab" * (101 * MIB))
    answer = httpx.post(
        f"{server.url}/api/v1/user_uploads",
        content=body,
        headers={"Content-Type": kind},
        auth=(ben.email, ben.api_key),
        timeout=120,
    )
    assert (answer.status_code, answer.json()["code"]) == (400, "BAD_REQUEST")
    assert list((server.data_dir / "files/uploads/incoming").iterdir()) == []


def test_requests_without_credentials_write_nothing_to_disk(sqlite_site: Site) -> None:
    server = sqlite_site.server
    body, kind = form(b"x" * MIB)
    answer = httpx.post(
        f"{server.url}/api/v1/user_uploads", content=body, headers={"Content-Type": kind}
    )
    assert answer.status_code == 401
    incoming = server.data_dir / "files/uploads/incoming"
    assert not incoming.exists() or list(incoming.iterdir()) == []


def test_path_traversal_reaches_no_file(sqlite_site: Site) -> None:
    server, ben = sqlite_site.server, sqlite_site.ben
    for path in (
        "/user_uploads/../../secret",
        "/user_uploads/1/../../../secret",
        "/user_uploads/..%2F..%2Fsecret",
        "/user_uploads/%2e%2e/secret",
        "/user_uploads//etc/passwd",
        "/user_uploads/thumbnail/../../secret/840x560.webp",
        "/user_uploads/1/ab/%00",
    ):
        assert ask(server, head("GET", path, ben)).status == 404


def test_concurrent_uploads_are_all_stored(site: Site) -> None:
    server, ben = site.server, site.ben
    with httpx.Client(auth=(ben.email, ben.api_key), timeout=120) as client:
        for n in range(30):
            answer = client.post(
                f"{server.url}/api/v1/user_uploads", files={"f": (f"{n}.txt", str(n).encode())}
            )
            assert answer.status_code == 200
    server.kill()
    server.start()
    with httpx.Client(auth=(ben.email, ben.api_key)) as client:
        listed = client.get(f"{server.url}/api/v1/attachments").json()["attachments"]
        assert len(listed) == 30
        for one in listed:
            content = client.get(f"{server.url}/user_uploads/{one['path_id']}").content
            assert content == one["name"].removesuffix(".txt").encode()


def test_zulips_python_client_uploads_files(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "naïve — plan.txt"
    file.write_bytes(b"the plan")
    with client_of(site.ben, site.server) as ben, client_of(site.ann, site.server) as ann:
        with file.open("rb") as content:
            answer = ok(ben.upload_file(content))
        assert answer["filename"] == file.name
        assert opened(site.server, site.ben, answer["uri"]) == b"the plan"
        link = f"[plan]({answer['uri']})"
        sent = ok(
            ben.send_message({"type": "stream", "to": "general", "topic": "t", "content": link})
        )
        (one,) = ok(ben.get_attachments())["attachments"]
        assert (one["name"], one["message_ids"]) == (file.name, [sent["id"]])
        assert opened(site.server, site.ann, answer["uri"]) == b"the plan"
        ok(ann.call_endpoint(url=f"attachments/{one['id']}", method="DELETE"))
        assert ok(ben.get_attachments())["attachments"] == []
