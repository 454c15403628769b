"""The data in each kind of export, which never has secrets."""

import re
from pathlib import Path

import pytest

from tertulia.exports.exporting import ExportFormat
from tertulia.model.exports import ExportKind
from tests.exports.exporting import export_of
from tests.support import Organization

pytestmark = pytest.mark.anyio

BOTH = pytest.mark.parametrize("form", list(ExportFormat))


async def with_secrets(org: Organization) -> dict[str, str]:
    """Let people write in each kind of conversation. Return the texts by name."""
    ann, ben, cleo = org["ann"], org["ben"], org["cleo"]
    await org.channel("square", "ann", "ben", "cleo")
    await org.channel("vault", "ann", "cleo", is_private=True)
    await org.channel("attic", "ben", "cleo", is_private=True)
    texts = {
        name: f"the {name} secret"
        for name in ("square", "vault", "attic", "direct", "shared", "draft", "word", "snippet")
    }
    await ann.send("square", "open", texts["square"])
    await ann.send("vault", "closed", texts["vault"])
    await cleo.send("attic", "closed", texts["attic"])
    await ann.write([cleo.user_id], texts["direct"])
    await ben.write([cleo.user_id], texts["shared"])
    drafts = [{"type": "", "to": [], "topic": "", "content": texts["draft"], "timestamp": 1}]
    assert (await cleo.post("/drafts", drafts=drafts)).ok
    assert (await cleo.post("/users/me/alert_words", alert_words=[texts["word"]])).ok
    assert (await cleo.post("/saved_snippets", title="t", content=texts["snippet"])).ok
    return texts


def found(content: bytes, texts: dict[str, str]) -> set[str]:
    return {name for name, text in texts.items() if text.encode() in content}


@BOTH
async def test_a_public_export_has_public_channels_only(
    org: Organization, tmp_path: Path, form: ExportFormat
) -> None:
    texts = await with_secrets(org)
    made = await export_of(org.node.config, tmp_path, ExportKind.PUBLIC, form)
    assert found(made.everything, texts) == {"square"}
    assert b"vault" not in made.everything
    assert b"closed" not in made.everything


@BOTH
async def test_with_consent_it_has_what_people_share(
    org: Organization, tmp_path: Path, form: ExportFormat
) -> None:
    texts = await with_secrets(org)
    assert (await org["ben"].patch("/settings", allow_private_data_export=True)).ok
    made = await export_of(org.node.config, tmp_path, ExportKind.CONSENT, form)
    assert found(made.everything, texts) == {"square", "attic", "shared"}
    assert b"vault" not in made.everything


async def test_a_full_export_has_everything_but_secrets(org: Organization, tmp_path: Path) -> None:
    texts = await with_secrets(org)
    config, state = org.node.config, org.node.state
    assert (await org["ann"].post("/invites", invitee_emails="new@example.com", stream_ids=[])).ok
    made = await export_of(config, tmp_path, ExportKind.FULL)
    assert found(made.everything, texts) == texts.keys()
    secret = config.data_path / "secret"
    keys = [person.api_key for person in org.people.values()]
    hidden = [*filter(None, keys), *([secret.read_text().strip()] if secret.exists() else [])]
    hidden += [
        text
        for one in state.credentials
        for text in (one.key_digest, one.key_sealed, one.password_hash or "")
    ]
    hidden += [one.nonce for one in state.invitations]
    assert len(keys) >= 5
    assert [text for text in filter(None, hidden) if text.encode() in made.everything] == []
    assert not re.search(rb'"(?:password|api_key|token)":"[^"]', made.everything)


async def test_private_settings_and_flags_need_consent(org: Organization, tmp_path: Path) -> None:
    ann, ben = org["ann"], org["ben"]
    await org.channel("square", "ann", "ben", "cleo")
    message_id = await ann.send("square", "open", "@**Ben** @**Cleo** hello")
    for person in (ben, org["cleo"]):
        settings = {"web_font_size_px": 20, "email_address_visibility": 4}
        assert (await person.patch("/settings", **settings)).ok
        flags = {"messages": [message_id], "op": "add", "flag": "starred"}
        assert (await person.post("/messages/flags", **flags)).ok
    assert (await ben.patch("/settings", allow_private_data_export=True)).ok
    made = await export_of(org.node.config, tmp_path, ExportKind.CONSENT)
    accounts = made.rows("zerver_userprofile") + made.rows("zerver_userprofile_mirrordummy")
    users = {row["id"]: row for row in accounts}
    assert users[ben.user_id]["web_font_size_px"] == 20
    assert users[ben.user_id]["delivery_email"] == "ben@example.com"
    cleo = users[org["cleo"].user_id]
    assert cleo["web_font_size_px"] == 16
    assert cleo["is_mirror_dummy"]
    assert not cleo["is_active"]
    assert cleo["delivery_email"].startswith("exported-user-")
    assert b"cleo@example.com" not in made.everything
    masks = {row["user_profile"]: row["flags_mask"] for row in made.rows("zerver_usermessage")}
    # Unread and starred are Ben's private data. That the text mentions Cleo isn't.
    assert masks[ben.user_id] == 8 | 2
    assert masks[org["cleo"].user_id] == 8 | 1


async def test_files_come_with_the_messages_that_link_them(
    org: Organization, tmp_path: Path
) -> None:
    ann = org["ann"]
    await org.channel("square", "ann", "ben")
    await org.channel("vault", "ann", is_private=True)
    content = {"square": b"open plans", "vault": b"closed plans"}
    paths = {}
    for name in content:
        paths[name] = await ann.upload("plan.txt", content[name])
        await ann.send(name, "plans", f"see [plan](/user_uploads/{paths[name]})")
    public = await export_of(org.node.config, tmp_path, ExportKind.PUBLIC)
    assert found(public.everything, {"square": "open plans", "vault": "closed plans"}) == {"square"}
    (row,) = public.rows("zerver_attachment")
    assert row["is_realm_public"]
    assert public.files[f"uploads/{row['path_id']}"] == b"open plans"
    pages = await export_of(org.node.config, tmp_path, ExportKind.FULL, ExportFormat.HTML)
    assert sorted(one for name, one in pages.files.items() if name.startswith("files/")) == sorted(
        content.values()
    )
    linked = [
        name
        for name, page in pages.files.items()
        if f'href="../files/{row["path_id"]}'.encode() in page
    ]
    assert len(linked) == 1
