"""The fields of Rocket.Chat's documents that are imported."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import fields

from tertulia.imports.rocketchat.dump import Dump

Document = TypeVar("Document", bound=Struct)


class RocketEmail(Struct, rename="camel"):
    address: str | None = None


class RocketUser(Struct, rename="camel"):
    id: str = field(name="_id")
    username: str | None = None
    name: str | None = None
    type: str | None = None
    active: bool | None = None
    roles: list[str] | None = None
    emails: list[RocketEmail] | None = None
    created_at: int | None = None
    language: str | None = None
    nickname: str | None = None
    bio: str | None = None
    status_text: str | None = None
    federated: bool | None = None
    settings: dict[str, Any] | None = None


class RocketPerson(Struct, rename="camel"):
    """A person in another document."""

    id: str = field(name="_id")
    username: str | None = None
    name: str | None = None


class RocketRoom(Struct, rename="camel"):
    id: str = field(name="_id")
    t: str
    name: str | None = None
    fname: str | None = None
    ts: int | None = None
    u: RocketPerson | None = None
    uids: list[str] | None = None
    usernames: list[str] | None = None
    prid: str | None = None
    team_id: str | None = None
    team_main: bool | None = None
    topic: str | None = None
    description: str | None = None
    announcement: str | None = None
    ro: bool | None = None
    archived: bool | None = None
    default: bool | None = None


class RocketSubscription(Struct, rename="camel"):
    rid: str
    u: RocketPerson
    ls: int | None = None
    f: bool | None = None
    alert: bool | None = None
    unread: float | None = None
    roles: list[str] | None = None
    desktop_notifications: str | None = None
    mobile_push_notifications: str | None = None
    email_notifications: str | None = None
    disable_notifications: bool | None = None
    hide_unread_status: bool | None = None


class RocketFile(Struct, rename="camel"):
    id: str = field(name="_id")
    name: str | None = None
    type: str | None = None
    type_group: str | None = None


class RocketMessage(Struct, rename="camel"):
    id: str = field(name="_id")
    rid: str
    ts: int
    u: RocketPerson
    msg: str | None = None
    t: str | None = None
    tmid: str | None = None
    tcount: float | None = None
    alias: str | None = None
    file: RocketFile | None = None
    files: list[RocketFile] | None = None
    attachments: list[dict[str, Any]] | None = None
    reactions: dict[str, Any] | None = None
    starred: list[RocketPerson] | None = None
    pinned: bool | None = None
    edited_at: int | None = None
    edited_by: RocketPerson | None = None
    hidden: bool | None = field(name="_hidden", default=None)


class RocketAvatar(Struct, rename="camel"):
    id: str = field(name="_id")
    user_id: str | None = None


class RocketEmoji(Struct, rename="camel"):
    name: str
    extension: str | None = None
    aliases: list[str] | None = None


class RocketTeam(Struct, rename="camel"):
    id: str = field(name="_id")
    name: str


class RocketTeamMember(Struct, rename="camel"):
    team_id: str
    user_id: str


def read_documents(
    dump: Dump,
    collection: str,
    kind: type[Document],
    skip: Callable[[str], None],
    count: Callable[[int], None] = lambda _: None,
) -> Iterator[Document]:
    """Yield the documents of a collection. Documents that aren't as Rocket.Chat stores them are
    passed to `skip`, as text. `count` is as in `opened`. Raises SourceError."""
    wanted = frozenset(field.encode_name for field in fields(kind))
    for document in dump.read(collection, wanted, count):
        try:
            yield msgspec.convert(document, kind)
        except msgspec.ValidationError:
            skip(str(document)[:200])
