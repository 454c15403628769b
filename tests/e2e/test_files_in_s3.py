"""Servers with files in a bucket: large files, and nodes without a shared disk."""

import json
import secrets
import shutil
from pathlib import Path

import httpx

from tests import postgres
from tests.e2e.server import Account, Server, ended
from tests.e2e.test_uploads import (
    MIB,
    PIECE,
    ask,
    create_upload,
    form,
    memory_of,
    offset_of,
    opened,
    tus,
)
from tests.s3 import ACCESS_KEY, SECRET_KEY, S3Server


def settled(data_dir: Path, bucket: S3Server, prefix: str) -> Path:
    """The data directory of a server with its files in the bucket."""
    data_dir.mkdir(mode=0o700, parents=True)
    settings = {
        "files_url": bucket.url(prefix),
        "s3_access_key_id": ACCESS_KEY,
        "s3_secret_access_key": SECRET_KEY,
    }
    text = "".join(f'{name} = "{value}"\n' for name, value in settings.items())
    (data_dir / "tertulia.toml").write_text(text)
    return data_dir


def files_below(directory: Path) -> list[Path]:
    return [place for place in directory.rglob("*") if place.is_file()]


def test_a_large_file_is_streamed_with_little_memory(bucket: S3Server, tmp_path: Path) -> None:
    server = Server(settled(tmp_path / "data", bucket, secrets.token_hex(4)))
    ann = server.create_organization()
    with ended(server):
        server.start()
        with httpx.Client(auth=(ann.email, ann.api_key), timeout=120) as client:
            warm, kind = form(b"x" * MIB)
            there = {"Content-Type": kind}
            address = f"{server.url}/api/v1/user_uploads"
            assert client.post(address, content=warm, headers=there).status_code == 200
            before = memory_of(server)
            body, _ = form(b"\xab" * (95 * MIB))
            answer = client.post(address, content=body, headers=there)
            assert answer.status_code == 200, answer.text
            with client.stream("GET", server.url + answer.json()["url"]) as download:
                assert sum(len(chunk) for chunk in download.iter_bytes()) == 95 * MIB
            # The number of bytes in memory at the same time, in parts of 5 MiB.
            assert memory_of(server) - before < 60 * MIB
        assert files_below(server.data_dir / "files") == []
        assert "Traceback" not in server.log_text()


def test_nodes_that_share_only_the_bucket_continue_each_other_s_uploads(
    bucket: S3Server, postgres_url: str, tmp_path: Path
) -> None:
    prefix = secrets.token_hex(4)
    with postgres.schema(postgres_url) as url:
        one = Server(settled(tmp_path / "one", bucket, prefix), url)
        ann = one.create_organization()
        two = Server(settled(tmp_path / "two", bucket, prefix), url)
        shutil.copy(one.data_dir / "secret", two.data_dir / "secret")
        with ended(one), ended(two):
            one.start()
            two.start()
            content = secrets.token_bytes(3 * MIB)
            where = create_upload(one, ann, len(content))
            for node in (one, two, one):
                offset = offset_of(node, ann, where)
                answer = sent(node, ann, where, offset, content[offset : offset + MIB])
            address = json.loads(answer)["url"]
            for node in (one, two):
                assert opened(node, ann, address) == content
            two.kill()
            assert opened(one, ann, address) == content
            assert files_below(one.data_dir / "files") == files_below(two.data_dir / "files") == []


def sent(server: Server, account: Account, where: str, offset: int, piece: bytes) -> bytes:
    head = {"Upload_Offset": offset, "Content_Type": PIECE, "Content_Length": len(piece)}
    answer = ask(server, tus("PATCH", where, account, **head) + piece)
    assert answer.status in {200, 204}
    return answer.body
