"""`tertulia check`."""

import asyncio
import contextlib
import json

import pytest

from tertulia import demo
from tertulia.jobs.upkeep import pruned_once
from tertulia.service.config import Config
from tertulia.store.store import database_at
from tests import databases
from tests.cli.support import Place
from tests.support import open_organization


async def prepared(place: Place) -> None:
    config = Config(data_dir=str(place.data_dir), database_url=place.database_url)
    await databases.copied(config, demo.prepared)


def tamper(place: Place, statement: str) -> None:
    database = database_at(place.data_dir, place.database_url)
    with contextlib.closing(database.connect(readonly=False)) as connection:
        connection.run(statement)
    database.close()


async def failed(place: Place) -> set[str]:
    """Run the checks, and return those that failed."""
    result = await asyncio.to_thread(place.run, "check", "--json")
    answer = json.loads(result.stdout)
    names = {one["check"] for one in answer["checks"] if not one["ok"]}
    assert (result.exit_code, answer["ok"]) == (int(bool(names)), not names)
    return names


async def test_healthy_installation_passes(place: Place) -> None:
    await prepared(place)
    assert await failed(place) == set()


@pytest.mark.parametrize(
    ("statement", "check"),
    [
        ("UPDATE channels SET doc = REPLACE(doc, 'kitchen', 'cellar')", "tables"),
        ("UPDATE channels SET doc = 'x' WHERE id = 1", "tables"),
        ("DELETE FROM personal_settings WHERE user_id = 4", "tables"),
        ("DELETE FROM log WHERE seq = 3", "log"),
        ("UPDATE head SET seq = seq + 1", "log"),
        ("UPDATE messages SET sender_id = 999 WHERE id = 1", "references"),
        ("INSERT INTO message_flags (user_id, message_id, flags) VALUES (4, 999, 1)", "references"),
        ("UPDATE installation SET value = 'x' WHERE key = 'secret'", "secret"),
        ("UPDATE head SET schema_version = 99", "database"),
    ],
)
async def test_tampered_tables_are_found(place: Place, statement: str, check: str) -> None:
    await prepared(place)
    tamper(place, statement)
    assert check in await failed(place)


async def test_unindexed_message_is_found(place: Place) -> None:
    await prepared(place)
    key = "message_id" if place.database_url else "rowid"
    tamper(place, f"DELETE FROM message_search WHERE {key} = 1")
    assert await failed(place) == {"search"}


async def test_pruned_log_passes(place: Place) -> None:
    await prepared(place)
    config = Config(data_dir=str(place.data_dir), database_url=place.database_url)
    async with open_organization(config) as org:
        await pruned_once(org.node.store, 2**60)
    assert await failed(place) == set()


async def test_missing_secret_is_found(place: Place) -> None:
    await prepared(place)
    (place.data_dir / "secret").unlink()
    assert await failed(place) == {"secret"}


@pytest.mark.parametrize("how", ["gone", "cut off"])
async def test_incomplete_upload_is_found(place: Place, how: str) -> None:
    await prepared(place)
    config = Config(data_dir=str(place.data_dir), database_url=place.database_url)
    async with open_organization(config) as org:
        path = await org["iris"].upload("a.txt", b"hello")
    assert await failed(place) == set()
    file = place.data_dir / "files" / "uploads" / path.rpartition("/")[0]
    if how == "gone":
        file.unlink()
    else:
        file.write_bytes(b"hell")
    assert await failed(place) == {"files"}


async def test_identity_providers_are_asked(place: Place) -> None:
    await prepared(place)
    method = {"name": "company", "kind": "oidc", "issuer": "http://127.0.0.1:9", "client_id": "a"}
    declared = json.dumps(json.dumps([method]))
    settings = place.data_dir / "tertulia.toml"
    settings.write_text(f'external_url = "https://chat.example.com"\nsign_in = {declared}\n')
    assert await failed(place) == {"sign-in with company"}


async def test_directories_and_metadata_are_looked_at(place: Place) -> None:
    pytest.importorskip("ldap3")
    pytest.importorskip("onelogin")
    await prepared(place)
    metadata = place.data_dir / "metadata.xml"
    metadata.write_text("<nothing/>")
    methods = [
        {"name": "people", "kind": "ldap", "url": "ldaps://127.0.0.1:9", "base": "dc=example"},
        {"name": "company", "kind": "saml", "metadata_file": str(metadata)},
    ]
    declared = json.dumps(json.dumps(methods))
    settings = place.data_dir / "tertulia.toml"
    settings.write_text(f'external_url = "https://chat.example.com"\nsign_in = {declared}\n')
    assert await failed(place) == {"sign-in with people", "sign-in with company"}


async def test_the_list_of_known_passwords_is_looked_at(place: Place) -> None:
    await prepared(place)
    file = place.data_dir / "known.txt"
    settings = place.data_dir / "tertulia.toml"
    settings.write_text(f"breached_passwords_file = {json.dumps(str(file))}\n")
    lines = [f"{digit * 40}:7" for digit in "AB"]
    assert await failed(place) == {"breached passwords"}
    for content in ("", "hunter2\n", "\n".join(reversed(lines))):
        file.write_text(content)
        assert await failed(place) == {"breached passwords"}, content
    file.write_text("\n".join(lines))
    assert await failed(place) == set()
