"""The demo organization."""

import asyncio
import io
import re
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from PIL import Image

from tertulia import demo
from tertulia.demo import story
from tertulia.demo.builder import CLIENT, GENERAL, Builder
from tertulia.demo.steps import reactions_by_day
from tertulia.service.config import Config
from tertulia.service.files import pictures
from tests import databases
from tests.cli.support import Place
from tests.cli.test_readme import blocks
from tests.programs import HeardProgram
from tests.support import Person, open_organization


async def test_introduced_people_can_sign_in(config: Config) -> None:
    await databases.copied(config, demo.prepared)
    residents = await demo.prepared(config)
    assert len({resident.role for resident in residents}) == 4
    async with open_organization(config) as org:
        for resident in residents:
            reply = await org.nobody.post(
                "/fetch_api_key", username=resident.address, password=resident.password
            )
            assert reply.ok["api_key"] == resident.api_key


async def test_people_have_plausible_unread_messages(config: Config) -> None:
    await databases.copied(config, demo.prepared)
    async with open_organization(config) as org:
        unread = {name: await unread_of(org[name]) for name in ("iris", "june", "theo", "zola")}
    iris = unread["iris"]
    topics = {(one["stream_id"], one["topic"]) for one in iris["streams"]}
    assert (iris["count"], len(topics), len(iris["mentions"])) == (25, 8, 2)
    assert [len(one["unread_message_ids"]) for one in iris["pms"]] == [1]
    assert all(5 < one["count"] < 40 for one in unread.values())


async def unread_of(person: Person) -> dict[str, Any]:
    data = (await person.post("/register", event_types=["message", "update_message_flags"])).ok
    return cast(dict[str, Any], data["unread_msgs"])


async def test_all_markup_is_rendered(config: Config) -> None:
    """All mentions, links, emoji, widgets, and files exist."""
    await databases.copied(config, demo.prepared)
    async with open_organization(config) as org:
        messages = await all_of(org["iris"])
        assert sum(m["type"] == "stream" for m in messages) > 300
        assert len({(m["stream_id"], m["subject"]) for m in messages if "stream_id" in m}) > 40
        assert {m["sender_full_name"] for m in messages} >= {"ليلى حداد", "佐藤 遥", "Doorbell"}
        texts = [
            re.sub(
                r'<code>.*?</code>|<span[^>]* class="emoji[^>]*>:\w+:</span>',
                "",
                m["content"],
                flags=re.DOTALL,
            )
            for m in messages
        ]
        for text in texts:
            assert not re.search(r"@\*|@_\*|#\*\*|\*\*|\{\w+:|&lt;time|[ >]:\w+:", text), text
        for kind in ("message-link", "stream", "user-mention", "user-group-mention", "katex"):
            assert any(f'class="{kind}' in text for text in texts), kind
        for kind in ("<table", "spoiler-block", "<blockquote", "<time ", "message_inline_image"):
            assert any(kind in text for text in texts), kind
        assert any(m["submessages"] for m in messages)
        assert any("last_edit_timestamp" in m for m in messages)
        files = [re.findall(r'"(/user_uploads/[^"]+)"', m["content"]) for m in messages]
        found = {file for some in files for file in some}
        assert len(found) >= 7
        for file in sorted(found):
            assert (await org["iris"].open(file)).status_code == 200, file


async def all_of(person: Person) -> list[dict[str, Any]]:
    reply = await person.get("/messages", anchor="oldest", num_before=0, num_after=5000)
    return cast(list[dict[str, Any]], reply.ok["messages"])


async def test_story_ends_at_the_first_start(config: Config) -> None:
    await databases.copied(config, demo.prepared, seconds=600)
    async with open_organization(config) as org:
        times = [m["timestamp"] for m in await all_of(org["iris"])]
        plans = (await org["iris"].get("/scheduled_messages")).ok["scheduled_messages"]
        reminders = (await org["iris"].get("/reminders")).ok["reminders"]
    now = time.time()
    assert times == sorted(times)
    assert now - 15 * 86400 < times[0]
    assert now - 3600 < times[-1] < now
    assert [one["scheduled_delivery_timestamp"] > now for one in [*plans, *reminders]] == [True] * 2


@pytest.mark.parametrize("hour", [0, 3, 9, 12, 18, 23])
def test_messages_are_in_order_at_any_hour(hour: int) -> None:
    end = datetime(2026, 3, 29, hour, 1).timestamp()
    for talk in story.conversations(story.Calendar(end)):
        times = [said.at for said in talk.messages]
        assert times == sorted(times)
        assert times[-1] < end


def test_reactions_follow_their_messages() -> None:
    """Even if the last messages are sent in the last minute before midnight."""
    end = datetime(2026, 3, 29, 0, 9, 40).timestamp()
    (talk,) = story.parsed("== a > b\n@ now-10\niris: Hello\n+ yum: theo", story.Calendar(end))
    ((at, _),) = reactions_by_day(talk.messages)
    assert talk.messages[0].at <= at < talk.messages[0].at + 60


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("iris: Hello!", "is in no conversation"),
        ("== a > b\n@ -1 09:00\niris: Hello\n= Bye -> Hi", "is not in"),
        ("== a > b\n@ -1 09:00\niris: Hello\n? wonders iris", "can't be read"),
        ("== a > b\n@ -1 09:00\niris: Hello\n> iris; c", "can't be read"),
        ("== a > b\n@ tomorrow\niris: Hello", "isn't a time"),
    ],
)
def test_invalid_line_is_reported(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        list(story.parsed(text, story.Calendar(1.8e9)))


def test_every_picture_has_its_size() -> None:
    people, bots = story.cafe().people, story.cafe().bots
    for name in [*(one.name for one in people), *(one["name"] for one in bots)]:
        for size in (pictures.AVATAR_SIZE, pictures.MEDIUM_SIZE):
            if content := story.picture(f"people/{name}-{size}.png"):
                assert Image.open(io.BytesIO(content)).size == (size, size)
    for name in story.cafe().emoji:
        content = story.picture(f"emoji/{name}.png") or b""
        assert Image.open(io.BytesIO(content)).size == (pictures.EMOJI_SIZE,) * 2


async def test_second_start_changes_nothing(config: Config) -> None:
    first = await databases.copied(config, demo.prepared)
    async with open_organization(config) as org:
        before = org.node.state.seq
    assert await demo.prepared(config) == first
    async with open_organization(config) as org:
        assert org.node.state.seq == before


class Killed(BaseException):
    """Stands for the end of the process."""


async def test_interrupted_start_is_continued_by_the_next(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every step is done once, however often the start is interrupted."""
    submit = Builder.submit

    def killed_at(step: int, is_written: bool) -> Callable[..., Awaitable[Any]]:
        async def failing(self: Builder, *arguments: Any, **more: Any) -> Any:
            if self.done == step and not is_written:
                raise Killed
            answer = await submit(self, *arguments, **more)
            if self.done == step:
                raise Killed
            return answer

        return failing

    for step, is_written in ((3, False), (60, True), (400, False), (400, True)):
        with monkeypatch.context() as patch:
            patch.setattr(Builder, "submit", killed_at(step, is_written))
            with pytest.raises(Killed):
                await demo.prepared(config)
    await demo.prepared(config)
    async with open_organization(config) as org:
        state = org.node.state
        contents = await org.node.store.read(
            lambda c: c.query("SELECT content FROM messages WHERE client = ?", (CLIENT,))
        )
        reactions = await org.node.store.read(lambda c: c.query("SELECT COUNT(*) FROM reactions"))
    told = list(story.conversations(story.Calendar(time.time())))
    said = [one for talk in told for one in talk.messages]
    assert len(contents) == len(set(contents)) == len(said)
    assert reactions[0][0] == sum(len(who) for one in said for _, who in one.reactions)
    names = [person.name for person in story.cafe().people]
    people = [user.address.partition("@")[0] for user in state.users if not user.is_bot]
    assert sorted(people) == sorted(names)
    assert sorted(c.name for c in state.channels) == sorted(
        [GENERAL, *(place.name for place in story.cafe().channels)]
    )
    assert len(state.attachments) == sum(len(one.files) for one in said)


async def test_other_organizations_are_not_changed(place: Place) -> None:
    await asyncio.to_thread(place.create_organization)
    result = await asyncio.to_thread(place.run, "serve", "--demo", "--port", "0")
    assert result.exit_code == 1
    assert "isn't a demo" in result.stderr


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[HeardProgram, str, str]]:
    """A server with a new demo, its address, and what it printed."""
    place = Place(tmp_path_factory.mktemp("demo") / "data")
    with place.serving("--demo") as (process, address):
        printed = "".join(
            takewhile(lambda line: "Press Ctrl-C to stop" not in line, process.stdout)
        )
        yield process, address, printed
        process.terminate()
        assert process.wait(timeout=60) == 0


def test_server_prints_how_to_sign_in_to_the_demo(served: tuple[HeardProgram, str, str]) -> None:
    process, address, printed = served
    assert address.startswith("http://127.0.0.1:")
    # Pillow isn't needed, and would take memory.
    if (loaded := Path(f"/proc/{process.pid}/maps")).exists():
        assert "_imaging" not in loaded.read_text()
    assert demo.PASSWORD in printed
    assert f"site={address}" in printed


def test_demo_is_entered_with_one_click(served: tuple[HeardProgram, str, str]) -> None:
    _, address, _ = served
    with httpx.Client(base_url=address, timeout=60) as browser:
        page = browser.get("/", follow_redirects=True)
        assert "Explore as" in page.text
        (resident, *_) = re.findall(r'name="resident" value="([^"]+)"', page.text)
        assert browser.post("/login", data={"resident": resident}).status_code == 303
        own = browser.get("/api/v1/users/me").json()
        assert own["delivery_email"] == resident


def test_first_program_of_the_readme_prints_the_message_it_sends(
    served: tuple[HeardProgram, str, str],
) -> None:
    class Printed(Exception):
        """Ends the program, which would run forever."""

    def stop(*words: str) -> None:
        raise Printed(*words)

    _, address, _ = served
    (program,) = blocks("python")
    with pytest.raises(Printed) as printed:
        exec(program.replace("http://127.0.0.1:9991", address), {"print": stop})
    assert printed.value.args == ("Iris Vidal", "Good morning!")
