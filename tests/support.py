"""An organization for tests, and people who send requests to it."""

import asyncio
import functools
import inspect
import json
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import httpx
import msgspec
from argon2 import PasswordHasher

from tertulia.app.composition import asgi, opened_node
from tertulia.app.founding import opened_vault
from tertulia.domain import channel_access
from tertulia.domain.accounts import users
from tertulia.domain.organization import lifecycle
from tertulia.jobs.registry import due_jobs
from tertulia.jobs.supervisor import Job
from tertulia.model.changes import (
    AnyChange,
    ChannelCreated,
    RealmChanged,
    RealmCreated,
    Subscribed,
    UserCreated,
)
from tertulia.model.channels import Channel
from tertulia.model.users import Bot, BotKind, Credential, Role, User
from tertulia.outbound.http_client import Web
from tertulia.service.config import Config, WorkerConfig
from tertulia.state.decision import CommandContext, Decision, Verb
from tertulia.wire.http.node import HttpNode
from tests import contract, databases, postgres
from tests.asgi_client import called

PASSWORD = "correct horse"
OWNER = "ann"
"""The founder, who is the only one with a password: `PASSWORD`."""


@dataclass
class Reply:
    """A response: its status, headers, and body."""

    status: int
    headers: httpx.Headers
    body: dict[str, Any]

    @property
    def ok(self) -> dict[str, Any]:
        """Return the body of a success. Fails with the body otherwise."""
        assert self.status == 200, self.body
        assert self.body["result"] == "success", self.body
        assert self.body["msg"] == ""
        return self.body

    def refused(self, code: str = "BAD_REQUEST", status: int = 400) -> dict[str, Any]:
        """Return the body of an error with this code and status."""
        assert (self.status, self.body.get("code")) == (status, code), self.body
        assert self.body["result"] == "error"
        assert self.body["msg"]
        return self.body


def as_sent(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@contextmanager
def row(*values: object) -> Iterator[None]:
    """A row of a table that one test checks on the same organization. Failures name the row."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the row {values!r:.500}")
        raise


Test = TypeVar("Test", bound=Callable[..., Any])


def rows(
    names: str | Sequence[str], table: Iterable[Any], *, ids: Sequence[str] = ()
) -> Callable[[Test], Test]:
    """`pytest.mark.parametrize` within one test, with the same fixtures for all rows. For quick
    rows that don't affect each other: starting a test takes as long as running many of them."""
    one = isinstance(names, str)
    columns = [names] if isinstance(names, str) else names
    cases = [(values,) if one else tuple(values) for values in table]
    called = [(name,) for name in ids] or cases
    assert len(called) == len(cases) > 0

    def decorated(test: Test) -> Test:
        given = [dict(zip(columns, case, strict=True)) for case in cases]
        signature = inspect.signature(test)
        fixtures = [p for name, p in signature.parameters.items() if name not in given[0]]

        @functools.wraps(test)
        async def one_by_one(**shared: Any) -> None:
            for name, values in zip(called, given, strict=True):
                with row(*name):
                    await test(**shared, **values)

        @functools.wraps(test)
        def in_turn(**shared: Any) -> None:
            for name, values in zip(called, given, strict=True):
                with row(*name):
                    test(**shared, **values)

        made: Any = one_by_one if inspect.iscoroutinefunction(test) else in_turn
        made.__signature__ = signature.replace(parameters=fixtures)
        return cast(Test, made)

    return decorated


@dataclass
class Person:
    """Someone who sends requests. Values that aren't strings are sent as JSON."""

    http: httpx.AsyncClient
    user_id: int = 0
    email: str = ""
    api_key: str = ""

    async def request(self, method: str, path: str, **parameters: Any) -> Reply:
        """Send a request to a path below `/api/v1`. The response must match the OpenAPI
        document."""
        texts = {n.rstrip("_"): as_sent(v) for n, v in parameters.items() if v is not None}
        auth = (self.email, self.api_key) if self.api_key else None
        whole = f"/api/v1{path}"
        response = await called(self.http, method, whole, texts, auth)
        if response is None:
            in_query = method in {"GET", "HEAD"}
            sent: dict[str, Any] = {"params": texts} if in_query else {"data": texts}
            response = await self.http.request(method, whole, auth=auth, **sent)
        body = contract.checked(method, path, response)
        return Reply(response.status_code, response.headers, body)

    async def raw(self, method: str, path: str, **how: Any) -> Reply:
        """Send a request with httpx's arguments, for bodies and headers that `request` doesn't
        support."""
        if self.api_key and "Authorization" not in how.get("headers", {}):
            how["auth"] = (self.email, self.api_key)
        response = await self.http.request(method, f"/api/v1{path}", **how)
        body = contract.checked(method, path, response)
        return Reply(response.status_code, response.headers, body)

    async def get(self, path: str, **parameters: Any) -> Reply:
        return await self.request("GET", path, **parameters)

    async def post(self, path: str, **parameters: Any) -> Reply:
        return await self.request("POST", path, **parameters)

    async def patch(self, path: str, **parameters: Any) -> Reply:
        return await self.request("PATCH", path, **parameters)

    async def delete(self, path: str, **parameters: Any) -> Reply:
        return await self.request("DELETE", path, **parameters)

    async def send(self, to: str | int, topic: str, content: str, **more: Any) -> int:
        """Send a channel message and return its ID."""
        reply = await self.post(
            "/messages", type="stream", to=to, topic=topic, content=content, **more
        )
        message_id: int = reply.ok["id"]
        return message_id

    async def write(self, to: Sequence[int], content: str, **more: Any) -> int:
        """Send a direct message and return its ID."""
        reply = await self.post("/messages", type="direct", to=list(to), content=content, **more)
        message_id: int = reply.ok["id"]
        return message_id

    async def upload(
        self, name: str = "note.txt", content: bytes = b"hello", kind: str = "text/plain"
    ) -> str:
        """Upload a file and return its path_id."""
        reply = await self.raw("POST", "/user_uploads", files={"file": (name, content, kind)})
        url: str = reply.ok["url"]
        return url.removeprefix("/user_uploads/")

    async def open(self, path: str, **how: Any) -> httpx.Response:
        """Fetch a path outside of the API as this person."""
        if self.api_key and "Authorization" not in how.get("headers", {}):
            how["auth"] = (self.email, self.api_key)
        return await self.http.get(path, **how)

    async def register(self, **parameters: Any) -> "Listener":
        """Register an event queue."""
        data = (await self.post("/register", **parameters)).ok
        return Listener(self, data["queue_id"], data["last_event_id"], data)


@dataclass
class Listener:
    """A client with an event queue."""

    person: Person
    queue_id: str
    last_event_id: int
    data: dict[str, Any]
    """The response of POST /register."""

    async def events(
        self, *, block: bool = False, acknowledge: bool = True
    ) -> list[dict[str, Any]]:
        """The events since the last call, without heartbeats."""
        reply = await self.person.get(
            "/events",
            queue_id=self.queue_id,
            last_event_id=self.last_event_id,
            dont_block=not block,
        )
        events: list[dict[str, Any]] = reply.ok["events"]
        ids = [event["id"] for event in events]
        assert ids == sorted(set(ids)), "event IDs must strictly increase"
        assert all(event_id > self.last_event_id for event_id in ids)
        if events and acknowledge:
            self.last_event_id = ids[-1]
        return [event for event in events if event["type"] != "heartbeat"]


@dataclass
class TestClock:
    """A clock that tests set forward."""

    __test__ = False

    ahead: float = 0
    stopped_at: float | None = None
    """UNIX seconds, or None for a running clock."""

    def __call__(self) -> float:
        return (time.time() if self.stopped_at is None else self.stopped_at) + self.ahead

    @property
    def is_right(self) -> bool:
        """Whether it hasn't been set yet."""
        return self.stopped_at is None and not self.ahead


@dataclass
class Organization:
    """A running node, called in process. Its owner is `ann`."""

    node: HttpNode
    http: httpx.AsyncClient
    people: dict[str, Person] = field(default_factory=dict)
    _due: Sequence[Job] = ()
    nobody: Person = field(init=False)

    def __post_init__(self) -> None:
        self.nobody = Person(self.http)

    def __getitem__(self, name: str) -> Person:
        return self.people[name]

    async def tick(self) -> None:
        """Let the server do what is due now."""
        self._due = self._due or due_jobs(self.node)
        for job in self._due:
            await job.once()
        await self.node.log.durability.settled()

    async def do(self, *changes: AnyChange, actor: str | None = None) -> None:
        """Apply changes without permission checks, to prepare a test."""

        def decide(_: CommandContext) -> Decision[None]:
            return Decision(None, changes)

        await self.node.log.submit(self.people[actor].user_id if actor else None, decide)

    async def change_realm(self, **values: object) -> None:
        """Change settings of the organization."""
        await self.do(RealmChanged(values=values))

    async def add(
        self,
        name: str,
        role: Role = Role.MEMBER,
        *,
        owner: str | None = None,
        follows: bool = False,
    ) -> Person:
        """Create an account called `Name`, at name@example.com; a bot if it has an `owner`. It's
        subscribed only to the default channels. With `follows`, it follows topics by participating,
        like accounts with the default settings."""
        user = await self.node.log.submit(
            None,
            account_created(
                name,
                await self.node.vault.credential(0, None),
                role,
                owner_id=None if owner is None else self.people[owner].user_id,
                follows=follows,
            ),
        )
        return self.person_of(name, user)

    def person_of(self, name: str, user: User) -> Person:
        """The person with an existing account."""
        key = self.node.vault.api_key(self.node.state.credentials[user.id])
        self.people[name] = Person(self.http, user.id, user.address, key)
        return self.people[name]

    async def channel(self, name: str, *subscribers: str, **settings: Any) -> int:
        """Create a channel with these subscribers and return its ID."""
        state = self.node.state
        channel_id = state.channels.next_id()
        channel = Channel(id=channel_id, name=name, created_at=int(self.node.clock()), **settings)
        await self.do(
            ChannelCreated(channel=channel),
            Subscribed(
                channel_id=channel_id,
                colors={self.people[who].user_id: "#76ce90" for who in subscribers},
                after=state.last_message_id,
                gained=tuple(
                    self.people[who].user_id
                    for who in subscribers
                    if not channel_access.sees_unsubscribed(
                        state, state.users[self.people[who].user_id], channel
                    )
                ),
                count=len(subscribers),
            ),
        )
        return channel_id


def account_created(
    name: str,
    credential: Credential,
    role: Role = Role.MEMBER,
    *,
    owner_id: int | None = None,
    follows: bool = False,
) -> Verb[User]:
    """The command that creates an account as `Organization.add` describes it."""

    def decide(context: CommandContext) -> Decision[User]:
        if owner_id is None:
            new = users.NewUser(
                address=f"{name}@example.com",
                full_name=name.title(),
                role=role,
                credential=credential,
            )
            create = users.create if follows else without_following(users.create)
            return create(context, new)
        user = User(
            id=context.state.users.next_id(),
            address=f"{name}-bot@example.com",
            full_name=f"{name.title()} Bot",
            joined_at=int(context.now),
            bot=Bot(kind=BotKind.GENERIC, owner_id=owner_id),
        )
        return Decision(user, [users.creation_change(context.state, user, credential)])

    return decide


def without_following(verb: Verb[User]) -> Verb[User]:
    """The command that creates an account which doesn't follow topics by participating, so that
    sending a message changes nothing else."""

    def decide(context: CommandContext, *arguments: Any) -> Decision[User]:
        decision = verb(context, *arguments)
        changes = [
            msgspec.structs.replace(
                change,
                settings=msgspec.structs.replace(
                    change.settings,
                    automatically_follow_topics_policy=4,
                    automatically_follow_topics_where_mentioned=False,
                ),
            )
            if isinstance(change, UserCreated)
            else change
            for change in decision.changes
        ]
        return Decision(decision.result, changes)

    return decide


@cache
def _password_hash() -> str:
    """The hash of `PASSWORD`, computed once because it's slow by design."""
    return PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)


@dataclass(frozen=True)
class Newcomer:
    """Someone who exists from the start; see `Organization.add`."""

    name: str
    role: Role = Role.MEMBER
    owner: str | None = None

    def joining(self, credential: Credential) -> Verb[User]:
        """The command that creates the account."""

        def decide(context: CommandContext) -> Decision[User]:
            owner_id = None
            if self.owner is not None:
                owner_id = context.state.users.by_address[f"{self.owner}@example.com"]
            return account_created(self.name, credential, self.role, owner_id=owner_id)(context)

        return decide


def organization_created(credential: Credential) -> Verb[User]:
    """The command that creates the organization and its owner with `PASSWORD`. Link previews are
    off, so that sent messages aren't updated later."""

    def decide(context: CommandContext) -> Decision[User]:
        decision = without_following(lifecycle.create)(
            context,
            "Example",
            "00000000-0000-4000-8000-000000000000",
            "ann@example.com",
            "Ann",
            msgspec.structs.replace(credential, password_hash=_password_hash()),
        )
        created, *others = decision.changes
        assert isinstance(created, RealmCreated)
        realm = msgspec.structs.replace(created.realm, inline_url_embed_preview=False)
        created = msgspec.structs.replace(created, realm=realm)
        return Decision(decision.result, [created, *others])

    return decide


def as_worker(config: Config, bus: Path, number: int = 0) -> Config:
    """The configuration of one of several workers, which find each other by the directory."""
    return WorkerConfig(**msgspec.structs.asdict(config), worker=number, bus=bus)


@dataclass(frozen=True)
class _Founding:
    """Fills the configured database with a new organization of `ann` and these people."""

    others: tuple[Newcomer, ...]
    clock: Callable[[], float] = time.time

    async def __call__(self, config: Config) -> None:
        vault = opened_vault(config, create=True)
        verbs = [organization_created(await vault.credential(lifecycle.FIRST_USER, None))]
        verbs += [new.joining(await vault.credential(0, None)) for new in self.others]
        databases.initialize(config, verbs, self.clock(), vault.fingerprint)
        vault.close()


@asynccontextmanager
async def new_organization(
    config: Config,
    *,
    clock: Callable[[], float] = time.time,
    elapsed: Callable[[], float] | None = None,
    others: Sequence[Newcomer] = (),
    web: Web | None = None,
) -> AsyncIterator[Organization]:
    """Create an organization on the configured, empty database, owned by `ann`, with other people
    (faster than adding them one by one). `elapsed` returns the time that has passed; by default it
    follows `clock`. `web` is the web that the node sees."""
    is_right = clock is time.time or (isinstance(clock, TestClock) and clock.is_right)
    if is_right and databases.is_empty(config):
        made = _Founding(tuple(others))
        await databases.copied(config, made, seconds=databases.NEW_SECONDS)
    else:
        await _Founding(tuple(others), clock)(config)
    async with open_organization(config, clock=clock, elapsed=elapsed, web=web) as organization:
        yield organization


@asynccontextmanager
async def open_organization(
    config: Config,
    *,
    clock: Callable[[], float] = time.time,
    elapsed: Callable[[], float] | None = None,
    web: Web | None = None,
) -> AsyncIterator[Organization]:
    """Open the organization with a new node, with all its people."""
    postgres.share_connections(config.database_url)
    if elapsed is None:
        elapsed = time.monotonic if clock is time.time else clock
    async with opened_node(config, lambda _: None, clock=clock, elapsed=elapsed, web=web) as node:
        transport = httpx.ASGITransport(app=asgi(node), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://chat.test") as http:
            organization = Organization(node, http)
            for user in node.state.users:
                if user.id in node.state.credentials:
                    organization.person_of(
                        user.address.partition("@")[0].removesuffix("-bot"), user
                    )
            yield organization


async def until(holds: Callable[[], bool], seconds: float = 60) -> None:
    """Let other tasks run until a condition without an event is true. Raises TimeoutError if that
    doesn't happen."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 (it has no event)
            await asyncio.sleep(0.005)


class Turns:
    """Counts iterations of the event loop while its context is open."""

    count = 0

    async def __aenter__(self) -> "Turns":
        self._task = asyncio.create_task(self._count())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _count(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)
