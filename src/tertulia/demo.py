"""A small organization to look around in: the team of a café, and a first day of its talk."""

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from tertulia import founding
from tertulia.app import opened_log, opened_vault
from tertulia.config import Config
from tertulia.domain import bots, messages, names, subscriptions, users
from tertulia.domain.channels import NewChannel
from tertulia.domain.notices import Render
from tertulia.log.writer import Log
from tertulia.markup.render import Renderer
from tertulia.model.errors import Refused
from tertulia.model.users import BotKind, Role, User
from tertulia.state.moment import Moment
from tertulia.state.organization import State
from tertulia.store import installation
from tertulia.store.store import database_at
from tertulia.vault import Vault

PASSWORD = "espresso-please"  # noqa: S105 (printed at every start; it guards nothing)
ORGANIZATION = "Café Tertulia"
CLIENT = "Tertulia demonstration"
_MARK = "demo"
_BEGUN, _DONE = "begun", "done"


class Person(NamedTuple):
    """Somebody of the team."""

    name: str
    full_name: str
    role: Role

    @property
    def address(self) -> str:
        return f"{self.name}@cafe.example"


OWNER = Person("iris", "Iris Vidal", Role.OWNER)
TEAM = (
    OWNER,
    Person("marco", "Marco Dias", Role.MODERATOR),
    Person("june", "June Okafor", Role.MEMBER),
    Person("theo", "Theo Baker", Role.GUEST),
)
BOT = "doorbell"
CHANNELS = (
    ("kitchen", "What we bake, brew and run out of.", ("iris", "marco", "june")),
    ("deliveries", "Who brings what, and when.", ("iris", "marco", "june", "theo")),
    ("evenings", "Readings, music and the Thursday conversation.", ("iris", "marco", "june")),
)
TALK = (
    ("iris", "general", "welcome", "Welcome to the café's chat! This is **#general**: all are in."),
    (
        "iris",
        "general",
        "welcome",
        "Every message has a *topic*, like the subject of a letter. A topic is one conversation:"
        " you can read it from its beginning, and leave out the ones that are not for you.",
    ),
    ("june", "general", "welcome", "So I write about the broken grinder in a topic of its own?"),
    (
        "marco",
        "general",
        "welcome",
        "Exactly. Begin one by giving it a name, in the channel where it belongs.",
    ),
    ("june", "kitchen", "grinder", "The small grinder stops after ten seconds. Too hot?"),
    ("marco", "kitchen", "grinder", "The burrs are worn. I have ordered new ones for Tuesday."),
    (
        "june",
        "kitchen",
        "almond cake",
        "Meanwhile, another topic: the almond cake is sold out by noon. Shall I bake two?",
    ),
    (
        "marco",
        "kitchen",
        "almond cake",
        "Please do! Two topics go on side by side here, and nobody has to ask which one is meant.",
    ),
    (BOT, "deliveries", "beans", "12 kg of beans were left at the back door at 7:40."),
    ("theo", "deliveries", "beans", "Those are mine: roasted yesterday, best from Friday on."),
    (
        "iris",
        "evenings",
        "Thursday conversation",
        "This week: *what makes a good question?* Bring one.",
    ),
    (
        "marco",
        "evenings",
        "Thursday conversation",
        "@**Iris Vidal** do we keep the long table free? Twenty have asked already.",
    ),
)
"""Who, where, in which topic, what."""
LETTER = ("june", "iris", "A message can also go to one person alone, as this one does. Hello!")


class NotADemo(Refused):
    """There is an organization here that is somebody's own."""


class Resident(Struct, frozen=True, kw_only=True):
    """An account of the demonstration, and how to sign in to it."""

    full_name: str
    role: Role
    address: str
    password: str
    api_key: str


async def prepared(config: Config) -> list[Resident]:
    """The demonstration's accounts. It is created where there is nothing yet, and finished where
    that was cut short. NotADemo where there is an organization of another kind."""
    mark = _require_demo(config)
    async with opened_log(config, lambda _: None) as log:
        vault = opened_vault(config, create=mark is None)
        try:
            if mark != _DONE:
                await log.store.write(lambda c: installation.put(c, _MARK, _BEGUN))
                await _create(log, vault, config.address_host)
                await log.store.write(lambda c: installation.put(c, _MARK, _DONE))
            await founding.require_fitting(log, vault)
            return _residents(log.state, vault)
        finally:
            vault.close()


def _require_demo(config: Config) -> str | None:
    """The demonstration's mark; None where there is nothing yet. Looks without touching."""
    database = database_at(config.data_path, config.database_url)
    if not database.exists():
        return None
    with contextlib.closing(database.connect(readonly=True)) as connection:
        mark = installation.value(connection, _MARK)
        if mark is None and installation.is_founded(connection):
            raise NotADemo(
                "The organization here is not a demonstration, and --demo leaves it alone. Serve"
                " it without --demo, or name another --data-dir."
            )
    return mark


def _residents(state: State, vault: Vault) -> list[Resident]:
    found = (state.user_with_address(person.address) for person in TEAM)
    return [
        Resident(
            full_name=user.full_name,
            role=user.role,
            address=user.address,
            password=PASSWORD,
            api_key=vault.api_key(state.credentials[user.id]),
        )
        for user in found
        if user is not None and user.is_active
    ]


async def _create(log: Log, vault: Vault, host: str) -> None:
    """Each step is left out where it has been done before."""
    if log.state.is_empty:
        founder = founding.Founder(
            organization=ORGANIZATION,
            address=OWNER.address,
            full_name=OWNER.full_name,
            password=PASSWORD,
        )
        await founding.found(log, vault, founder)
    for person in TEAM:
        if log.state.user_with_address(person.address) is None:
            new = users.NewUser(
                address=person.address,
                full_name=person.full_name,
                role=person.role,
                credential=await vault.credential(0, PASSWORD),
            )
            await log.submit(None, users.create, new)
    cast = {person.name: _user(log.state, person.address) for person in TEAM}
    await _create_bot(log, vault, cast, host)
    render = Renderer().render
    await _create_channels(log, cast, render)
    await _talk(log, cast, render)


def _user(state: State, address: str) -> User:
    user = state.user_with_address(address)
    if user is None:
        raise RuntimeError(f"{address} was created and is not there")
    return user


async def _create_bot(log: Log, vault: Vault, cast: dict[str, User], host: str) -> None:
    address = bots.bot_address(BOT, host)
    if log.state.user_with_address(address) is None:
        new = bots.NewBot(
            full_name="Doorbell",
            short_name=BOT,
            kind=BotKind.GENERIC,
            host=host,
            credential=await vault.credential(0, None),
        )
        await log.submit(cast[OWNER.name].id, bots.create, new)
    cast[BOT] = _user(log.state, address)


async def _create_channels(log: Log, cast: dict[str, User], render: Render) -> None:
    for name, description, subscribers in CHANNELS:
        if log.state.channel_named(name) is None:
            new = NewChannel(
                name=name,
                description=description,
                rendered_description=render(
                    Moment(log.state, log.clock(), cast[OWNER.name].id), description
                ).html,
            )
            wanted = subscriptions.Wanted(
                channels=(new,),
                principals=tuple(cast[who].id for who in subscribers),
                tell_subscribed=False,
            )
            await log.submit(cast[OWNER.name].id, subscriptions.subscribe, wanted, render)


async def _talk(log: Log, cast: dict[str, User], render: Render) -> None:
    """What was said before is not said again: nobody else has been here yet."""
    ((said,),) = await log.store.read(
        lambda c: c.query("SELECT COUNT(*) FROM messages WHERE client = ?", (CLIENT,))
    )
    lines: Sequence[tuple[str, messages.ToChannel | messages.ToPeople, str]] = [
        *((who, messages.ToChannel(topic, name=name), text) for who, name, topic, text in TALK),
        (LETTER[0], messages.ToPeople(frozenset({cast[LETTER[1]].id})), LETTER[2]),
    ]
    for who, to, text in lines[said:]:
        draft = messages.Draft(
            to=to,
            content=names.message_content(text),
            rendered=render(Moment(log.state, log.clock(), cast[who].id), text),
            client=CLIENT,
            read_by_sender=True,
        )
        await log.submit(cast[who].id, messages.send, draft)
