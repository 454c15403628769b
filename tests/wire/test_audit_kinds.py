"""Each kind of record of the audit log: who did it, to whom, from where, and with which key."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pyotp
import pytest

from tertulia.cli import CommandLineOrigin
from tertulia.log.origin import FROM_SERVER, current_origin
from tertulia.model import changes
from tertulia.model.audit_log import AuditKind, AuditRecord, Way
from tertulia.model.changes import AnyChange
from tertulia.model.exports import DataExport, ExportKind
from tertulia.model.identities import Identity
from tertulia.model.imports import DataImport, ImportKind, ImportState
from tertulia.model.users import Role
from tertulia.store import audit_log
from tests.browsers import FIREFOX, set_password, signed_in_browser
from tests.support import PASSWORD, Organization, Person

ADDRESS = "127.0.0.1"
SECRET = "xylophone"
"""A text in all data that the audit log must not have."""


class Scene:
    """An organization, and its owner at several devices."""

    def __init__(self, org: Organization, browser: Person, program: Person, key_id: int) -> None:
        self.org, self.api, self.browser, self.program = org, org["ann"], browser, program
        self.key_id = key_id
        self.names = 0

    async def person(self, role: Role = Role.MEMBER) -> Person:
        """Return a new person, called `zoe`, with a password."""
        self.names += 1
        self.org.people.pop("zoe", None)
        await self.org.add(f"zoe{self.names}", role)
        self.org.people["zoe"] = self.org[f"zoe{self.names}"]
        await set_password(self.org, "zoe")
        return self.org["zoe"]

    async def room(self, **settings: Any) -> int:
        """Create a new channel of ann's."""
        self.names += 1
        return await self.org.channel(f"room {self.names}", "ann", **settings)

    async def group(self) -> int:
        self.names += 1
        made = await self.api.post(
            "/user_groups/create", name=f"group {self.names}", description=SECRET, members=[]
        )
        group_id: int = made.ok["group_id"]
        return group_id

    async def operator(self, *made: AnyChange) -> None:
        """Make changes as an operator's command."""
        token = current_origin.set(CommandLineOrigin("tertulia test"))
        try:
            await self.org.do(*made, actor="ann")
        finally:
            current_origin.reset(token)

    async def server(self, *made: AnyChange) -> None:
        """Make changes as a job of the server."""
        token = current_origin.set(FROM_SERVER)
        try:
            await self.org.do(*made)
        finally:
            current_origin.reset(token)


Act = Callable[[Scene], Awaitable[object]]


class Example(NamedTuple):
    """An action that is recorded."""

    act: Act
    way: Way
    whom: str | None = None
    """The person that the action affects."""
    actor: str | None = "ann"


EXAMPLES: dict[str, Example] = {}


def example(
    kind: AuditKind, way: Way, *, whom: str | None = None, actor: str | None = "ann"
) -> Callable[[Act], Act]:
    def add(act: Act) -> Act:
        EXAMPLES[kind] = Example(act, way, whom, actor)
        return act

    return add


# Signing in, and keys


@example("signed_in", "page", whom="ben", actor="ben")
async def _(scene: Scene) -> None:
    await signed_in_browser(scene.org, "ben")


@example("sign_in_failed", "page", whom="ann", actor=None)
async def _(scene: Scene) -> None:
    sent = {"username": "ann@example.com", "password": SECRET}
    (await scene.org.nobody.post("/fetch_api_key", **sent)).refused("AUTHENTICATION_FAILED", 401)


@example("key_refused", "page", whom="ann", actor=None)
async def _(scene: Scene) -> None:
    wrong = Person(scene.org.http, email="ann@example.com", api_key=SECRET)
    (await wrong.get("/users/me")).refused("INVALID_API_KEY", 401)


@example("sessions_ended", "session", whom="ann")
async def _(scene: Scene) -> None:
    await signed_in_browser(scene.org, "ann")
    newest = scene.org.node.state.sessions.of_user[scene.api.user_id][-1]
    (await scene.browser.delete(f"/sessions/{newest.id}")).ok


@example("password_changed", "session", whom="zoe", actor="zoe")
async def _(scene: Scene) -> None:
    await scene.person()
    browser = await signed_in_browser(scene.org, "zoe")
    new = {"old_password": PASSWORD, "new_password": f"{SECRET} umbrella 9"}
    (await browser.patch("/settings", **new)).ok


@example("password_removed", "session", whom="zoe")
async def _(scene: Scene) -> None:
    zoe = await scene.person()
    actions = {"delete_profile": True}
    (await scene.browser.delete(f"/users/{zoe.user_id}", actions=actions)).ok


@example("api_key_changed", "api_key", whom="zoe", actor="zoe")
async def _(scene: Scene) -> None:
    (await (await scene.person()).post("/users/me/api_key/regenerate")).ok


@example("key_created", "session", whom="ann")
async def _(scene: Scene) -> None:
    (await scene.browser.post("/users/me/keys", name="Tablet", access="read")).ok


@example("keys_revoked", "session", whom="ann")
async def _(scene: Scene) -> None:
    made = (await scene.browser.post("/users/me/keys", name="Watch")).ok
    (await scene.browser.delete(f"/users/me/keys/{made['key_id']}")).ok


FACTORS = "/users/me/second_factors"


async def with_app(scene: Scene) -> tuple[Person, list[str]]:
    """Return a new person with an authenticator app, and their recovery codes."""
    zoe = await scene.person()
    secret = (await zoe.post(f"{FACTORS}/totp", name="Phone")).ok["secret"]
    done = (await zoe.post(f"{FACTORS}/totp/confirm", code=pyotp.TOTP(secret).now())).ok
    return zoe, done["recovery_codes"]


@example("second_factor_added", "api_key", whom="zoe", actor="zoe")
async def _(scene: Scene) -> None:
    await with_app(scene)


@example("second_factors_removed", "session", whom="zoe")
async def _(scene: Scene) -> None:
    zoe, _ = await with_app(scene)
    (await scene.browser.delete(f"/users/{zoe.user_id}/second_factors")).ok


@example("recovery_codes_changed", "api_key", whom="zoe", actor="zoe")
async def _(scene: Scene) -> None:
    zoe, _ = await with_app(scene)
    (await zoe.post(f"{FACTORS}/recovery_codes")).ok


@example("recovery_code_used", "page", whom="zoe", actor="zoe")
async def _(scene: Scene) -> None:
    zoe, codes = await with_app(scene)
    sent = {"username": zoe.email, "password": PASSWORD, "code": codes[0]}
    (await scene.org.nobody.post("/fetch_api_key", **sent)).ok


def identity(scene: Scene) -> Identity:
    user_id = scene.org["ben"].user_id
    return Identity(id=1, user_id=user_id, method="company", subject=SECRET, linked_at=1)


@example("identity_linked", "command_line", whom="ben")
async def _(scene: Scene) -> None:
    await scene.operator(changes.IdentityLinked(identity=identity(scene)))


@example("identities_unlinked", "command_line", whom="ben")
async def _(scene: Scene) -> None:
    user_id = scene.org["ben"].user_id
    await scene.operator(
        changes.IdentityLinked(identity=identity(scene)),
        changes.IdentitiesUnlinked(user_id=user_id, identity_ids=(1,)),
    )


@example("address_change_requested", "session", whom="zoe", actor="zoe")
async def _(scene: Scene) -> None:
    await scene.person()
    browser = await signed_in_browser(scene.org, "zoe")
    (await browser.patch("/settings", email="zoe.new@example.com")).ok


# Accounts


@example("account_created", "session", whom="zoe")
async def _(scene: Scene) -> None:
    sent = {"email": "zoe@example.com", "password": f"{SECRET} 1", "full_name": "Zoe"}
    user_id = (await scene.browser.post("/users", **sent)).ok["user_id"]
    scene.org.person_of("zoe", scene.org.node.state.users[user_id])


@example("account_changed", "access_key", whom="zoe")
async def _(scene: Scene) -> None:
    zoe = await scene.person()
    (await scene.program.patch(f"/users/{zoe.user_id}", full_name="Zoe Zest")).ok


@example("role_changed", "session", whom="zoe")
async def _(scene: Scene) -> None:
    zoe = await scene.person()
    (await scene.browser.patch(f"/users/{zoe.user_id}", role=300)).ok


@example("account_deactivated", "session", whom="zoe")
async def _(scene: Scene) -> None:
    (await scene.browser.delete(f"/users/{(await scene.person()).user_id}")).ok


@example("account_reactivated", "session", whom="zoe")
async def _(scene: Scene) -> None:
    zoe = await scene.person()
    (await scene.browser.delete(f"/users/{zoe.user_id}")).ok
    (await scene.browser.post(f"/users/{zoe.user_id}/reactivate")).ok


@example("account_erased", "session", whom="zoe")
async def _(scene: Scene) -> None:
    await EXAMPLES["password_removed"].act(scene)


# The organization


@example("settings_changed", "access_key")
async def _(scene: Scene) -> None:
    scene.names += 1
    (await scene.program.patch("/realm", description=f"Number {scene.names}")).ok


@example("default_settings_changed", "access_key")
async def _(scene: Scene) -> None:
    before = scene.org.node.state.default_settings.twenty_four_hour_time
    changed = {"twenty_four_hour_time": not before}
    (await scene.program.patch("/realm/user_settings_defaults", **changed)).ok


@example("organization_deactivated", "session")
async def _(scene: Scene) -> None:
    (await scene.browser.post("/realm/deactivate")).ok
    await scene.operator(changes.RealmReactivated())


@example("organization_reactivated", "command_line")
async def _(scene: Scene) -> None:
    await scene.operator(changes.RealmDeactivated(), changes.RealmReactivated())


@example("event_queues_ended", "server", actor=None)
async def _(scene: Scene) -> None:
    await scene.server(changes.QueuesEnded())


@example("domain_added", "session")
async def _(scene: Scene) -> None:
    (await scene.browser.post("/realm/domains", domain="one.example", allow_subdomains=True)).ok


@example("domain_changed", "session")
async def _(scene: Scene) -> None:
    (await scene.browser.post("/realm/domains", domain="two.example", allow_subdomains=True)).ok
    (await scene.browser.patch("/realm/domains/two.example", allow_subdomains=False)).ok


@example("domain_removed", "session")
async def _(scene: Scene) -> None:
    (await scene.browser.post("/realm/domains", domain="six.example", allow_subdomains=True)).ok
    (await scene.browser.delete("/realm/domains/six.example")).ok


async def invite(scene: Scene, person: Person) -> str:
    scene.names += 1
    address = f"new{scene.names}@example.com"
    (await person.post("/invites", invitee_emails=address, stream_ids=[])).ok
    return address


@example("invited", "access_key")
async def _(scene: Scene) -> None:
    await invite(scene, scene.program)


@example("invitation_link_created", "access_key")
async def _(scene: Scene) -> None:
    (await scene.program.post("/invites/multiuse")).ok


@example("invitation_link_changed", "access_key")
async def _(scene: Scene) -> None:
    (await scene.program.post("/invites/multiuse")).ok
    link = max(one.id for one in scene.org.node.state.invitations)
    (await scene.program.patch(f"/invites/multiuse/{link}", invite_as=600)).ok


@example("invitation_used", "session")
async def _(scene: Scene) -> None:
    sent = {"email": await invite(scene, scene.api), "password": f"{SECRET} 1", "full_name": "Nina"}
    (await scene.browser.post("/users", **sent)).ok


@example("invitation_revoked", "access_key")
async def _(scene: Scene) -> None:
    await invite(scene, scene.api)
    newest = max(one.id for one in scene.org.node.state.invitations)
    (await scene.program.delete(f"/invites/{newest}")).ok


@example("export_requested", "session", whom="ann")
async def _(scene: Scene) -> None:
    (await scene.browser.post("/users/me/data_export")).ok


def export(scene: Scene, finished_at: int = 0, deleted_at: int = 0) -> AnyChange:
    """Return the change of an export into this state."""
    user_id = scene.api.user_id
    made = DataExport(
        id=7,
        user_id=user_id,
        kind=ExportKind.PUBLIC,
        requested_at=1,
        finished_at=finished_at,
        deleted_at=deleted_at,
    )
    return changes.DataExportSet(export=made)


@example("export_finished", "server", whom="ann", actor=None)
async def _(scene: Scene) -> None:
    await scene.server(export(scene), export(scene, finished_at=2))


@example("export_deleted", "command_line", whom="ann")
async def _(scene: Scene) -> None:
    await scene.operator(export(scene), export(scene, finished_at=2, deleted_at=3))
    await scene.operator(export(scene, finished_at=2), export(scene, finished_at=2, deleted_at=3))


def imported(scene: Scene, *states: ImportState) -> list[AnyChange]:
    """Return the changes of an import that goes through these states."""
    scene.names += 1
    return [
        changes.DataImportSet(
            data_import=DataImport(
                id=scene.names,
                started_by=scene.api.user_id,
                kind=ImportKind.ZULIP,
                state=state,
                path="",
                name=SECRET,
                size=1,
                requested_at=1,
            )
        )
        for state in states
    ]


@example("import_requested", "command_line", whom="ann")
async def _(scene: Scene) -> None:
    await scene.operator(*imported(scene, ImportState.CHECKING))


@example("import_checked", "server", whom="ann", actor=None)
async def _(scene: Scene) -> None:
    await scene.server(*imported(scene, ImportState.CHECKING, ImportState.CHECKED))


@example("import_started", "command_line", whom="ann")
async def _(scene: Scene) -> None:
    await scene.operator(*imported(scene, ImportState.CHECKED, ImportState.IMPORTING))


@example("import_finished", "server", whom="ann", actor=None)
async def _(scene: Scene) -> None:
    await scene.server(*imported(scene, ImportState.IMPORTING, ImportState.FINISHED))


@example("import_failed", "server", whom="ann", actor=None)
async def _(scene: Scene) -> None:
    await scene.server(*imported(scene, ImportState.IMPORTING, ImportState.FAILED))


@example("import_canceled", "command_line", whom="ann")
async def _(scene: Scene) -> None:
    await scene.operator(*imported(scene, ImportState.CHECKED, ImportState.CANCELED))


@example("audit_log_exported", "session")
async def _(scene: Scene) -> None:
    (await scene.browser.get("/audit_log/export")).ok


# Channels, groups, and deletions


@example("channel_created", "access_key")
async def _(scene: Scene) -> None:
    (await scene.program.post("/channels/create", name="made", subscribers=[])).ok


@example("channel_changed", "access_key")
async def _(scene: Scene) -> None:
    channel = await scene.room()
    (await scene.program.patch(f"/streams/{channel}", new_name="renamed", description=SECRET)).ok


@example("channel_archived", "access_key")
async def _(scene: Scene) -> None:
    (await scene.program.delete(f"/streams/{await scene.room()}")).ok


async def add_to_private(scene: Scene) -> int:
    channel = await scene.room(is_private=True)
    name = scene.org.node.state.channels[channel].name
    sent = {"subscriptions": [{"name": name}], "principals": [scene.org["ben"].user_id]}
    (await scene.program.post("/users/me/subscriptions", **sent)).ok
    return channel


@example("channel_members_added", "access_key", whom="ben")
async def _(scene: Scene) -> None:
    await add_to_private(scene)


@example("channel_members_removed", "access_key", whom="ben")
async def _(scene: Scene) -> None:
    name = scene.org.node.state.channels[await add_to_private(scene)].name
    sent = {"subscriptions": [name], "principals": [scene.org["ben"].user_id]}
    (await scene.program.delete("/users/me/subscriptions", **sent)).ok


@example("group_created", "access_key")
async def _(scene: Scene) -> None:
    sent = {"name": "made", "description": SECRET, "members": []}
    (await scene.program.post("/user_groups/create", **sent)).ok


@example("group_changed", "access_key")
async def _(scene: Scene) -> None:
    (await scene.program.patch(f"/user_groups/{await scene.group()}", name="renamed")).ok


@example("group_members_added", "access_key", whom="ben")
async def _(scene: Scene) -> None:
    path = f"/user_groups/{await scene.group()}/members"
    (await scene.program.post(path, add=[scene.org["ben"].user_id])).ok


@example("group_members_removed", "access_key", whom="ben")
async def _(scene: Scene) -> None:
    path = f"/user_groups/{await scene.group()}/members"
    (await scene.program.post(path, add=[scene.org["ben"].user_id])).ok
    (await scene.program.post(path, delete=[scene.org["ben"].user_id])).ok


@example("messages_deleted", "access_key")
async def _(scene: Scene) -> None:
    message = await scene.api.send(await scene.room(), SECRET, SECRET)
    (await scene.program.delete(f"/messages/{message}")).ok


@example("file_deleted", "access_key", whom="ann")
async def _(scene: Scene) -> None:
    await scene.api.upload(f"{SECRET}.txt")
    newest = max(one.id for one in scene.org.node.state.attachments)
    (await scene.program.delete(f"/attachments/{newest}")).ok


FOUNDING: frozenset[str] = frozenset({"organization_created"})
"""Recorded before anyone could send a request (`tests/cli/test_audit.py`)."""


async def find_records(org: Organization, kind: str | None = None) -> list[AuditRecord]:
    """Return the records of this kind, newest first."""
    await org.node.log.catch_up()
    stored = await org.node.store.read(audit_log.page, 5000, kind=kind)
    return [one.record for one in stored]


async def test_each_kind_is_recorded_with_who_whom_and_from_where(org: Organization) -> None:
    """If this fails for a new kind, add an example of it."""
    assert set(EXAMPLES) | FOUNDING == set(get_args(AuditKind))
    ann = org["ann"]
    made = (await ann.post("/users/me/keys", name="Laptop")).ok
    program = Person(org.http, ann.user_id, ann.email, made["api_key"])
    browser = await signed_in_browser(org)
    session = org.node.state.sessions.of_user[ann.user_id][-1]
    scene = Scene(org, browser, program, made["key_id"])
    for kind, (act, way, whom, actor) in EXAMPLES.items():
        before = len(await find_records(org, kind))
        await act(scene)
        found = await find_records(org, kind)
        assert len(found) > before, kind
        record = found[0]
        ids = [None if name is None else org[name].user_id for name in (actor, whom)]
        assert [record.actor_id, record.user_id] == ids, kind
        origin = record.origin
        assert origin.way == way, kind
        assert origin.address == ("" if way in {"command_line", "server"} else ADDRESS), kind
        assert origin.key_id == (scene.key_id if way == "access_key" else None), kind
        assert origin.command == ("tertulia test" if way == "command_line" else ""), kind
        if way == "session":
            assert origin.agent == FIREFOX, kind
            assert (origin.session_id == session.id) is (actor == "ann"), kind
    assert SECRET not in repr(await find_records(org))


async def test_codes_that_end_with_the_last_factor_are_not_recorded_as_new(
    org: Organization,
) -> None:
    browser = await signed_in_browser(org)
    zoe, _ = await with_app(Scene(org, browser, browser, 0))
    before = len(await find_records(org, "recovery_codes_changed"))
    (await browser.delete(f"/users/{zoe.user_id}/second_factors")).ok
    assert len(await find_records(org, "recovery_codes_changed")) == before
    assert len(await find_records(org, "second_factors_removed")) == 1


@pytest.mark.parametrize("language", ["de", "en", "es", "fr", "ja", "pt"])
def test_the_client_has_a_name_for_each_kind(language: str) -> None:
    page = Path(__file__).parents[2] / "web/words" / language / "manage.json"
    assert set(json.loads(page.read_text())["audit"]["kinds"]) == set(get_args(AuditKind))
