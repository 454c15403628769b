"""Rendered messages as clients get them, with flags and events that follow from their content."""

from typing import Any

import pytest

from tertulia.model.changes import Subscribed
from tests.pictures import picture
from tests.support import Organization, Person, row
from tests.wire.sample_organization import LIMITED

pytestmark = pytest.mark.usefixtures("no_logged_errors")

MESSAGES = ["message", "update_message"]


async def message(person: Person, message_id: int) -> dict[str, Any]:
    """A message as the person sees it."""
    found: dict[str, Any] = (await person.get(f"/messages/{message_id}")).ok["message"]
    return found


async def rendered(person: Person, content: str) -> str:
    """How a message with this content would be rendered."""
    html: str = (await person.post("/messages/render", content=content)).ok["rendered"]
    return html


async def group(org: Organization, name: str, *members: str, **settings: Any) -> int:
    """Create a group of these people. Returns its ID."""
    ids = [org[one].user_id for one in members]
    reply = await org["ann"].post(
        "/user_groups/create", name=name, description="", members=ids, **settings
    )
    group_id: int = reply.ok["group_id"]
    return group_id


async def test_a_preview_equals_the_sent_message(org: Organization) -> None:
    await org.channel("lounge", "ann")
    content = "**a** :tada: `b`\n* @**Ann** <i> $$x^2$$"
    sent = await org["ann"].send("lounge", "t", content)
    shown = (await message(org["ann"], sent))["content"]
    assert shown == await rendered(org["ann"], content)
    assert shown.startswith("<p><strong>a</strong> <span aria-label=")


# Mentions


async def test_a_mentioned_group_notifies_its_members(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben", "gus")
    inner = await group(org, "inner", "gus", "cleo")
    await group(org, "cooks", "ben", subgroups=[inner])
    queues = {
        name: await org[name].register(event_types=MESSAGES) for name in ("ann", "ben", "gus")
    }
    sent = await org["ann"].send("lounge", "t", "@*cooks* and @_*inner*")
    flags = {name: (await queue.events())[0]["flags"] for name, queue in queues.items()}
    assert {name: "mentioned" in found for name, found in flags.items()} == {
        "ann": False,
        "ben": True,
        "gus": True,
    }
    assert "mentioned" in (await message(org["gus"], sent))["flags"]
    assert "mentioned" not in (await message(org["cleo"], sent))["flags"]


async def test_a_group_is_notified_only_by_people_who_may_mention_it(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben", "cleo")
    only_ben = {"direct_members": [org["ben"].user_id], "direct_subgroups": []}
    await group(org, "cooks", "cleo", can_mention_group=only_ben)
    by_ann = await org["ann"].send("lounge", "t", "@*cooks*")
    by_ben = await org["ben"].send("lounge", "t", "@*cooks*")
    assert (await message(org["cleo"], by_ann))["content"] == "<p>@<em>cooks</em></p>"
    assert "mentioned" not in (await message(org["cleo"], by_ann))["flags"]
    assert 'class="user-group-mention"' in (await message(org["cleo"], by_ben))["content"]
    assert "mentioned" in (await message(org["cleo"], by_ben))["flags"]


async def test_an_edit_notifies_the_group_it_mentions(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    await group(org, "cooks", "ben")
    sent = await org["ann"].send("lounge", "t", "nobody yet")
    ben = await org["ben"].register(event_types=MESSAGES)
    (await org["ann"].patch(f"/messages/{sent}", content="@*cooks*")).ok
    (event,) = await ben.events()
    assert "mentioned" in event["flags"]
    assert 'class="user-group-mention"' in event["rendered_content"]
    (await org["ann"].patch(f"/messages/{sent}", content="nobody again")).ok
    (event,) = await ben.events()
    assert "mentioned" not in event["flags"]


@pytest.mark.parametrize(
    ("word", "flag"),
    [("all", "stream_wildcard_mentioned"), ("topic", "topic_wildcard_mentioned")],
)
async def test_in_a_direct_conversation_wildcards_mean_everyone(
    org: Organization, word: str, flag: str
) -> None:
    ben = await org["ben"].register(event_types=MESSAGES)
    sent = await org["ann"].write([org["ben"].user_id, org["cleo"].user_id], f"@**{word}**")
    (event,) = await ben.events()
    assert {flag, "wildcard_mentioned"} <= set(event["flags"])
    for name in ("ben", "cleo"):
        assert flag in (await message(org[name], sent))["flags"]
    unread = (
        await org["cleo"].post("/register", fetch_event_types=["message", "update_message_flags"])
    ).ok["unread_msgs"]
    assert sent in unread["mentions"]
    (await org["ann"].patch(f"/messages/{sent}", content="nobody")).ok
    assert flag not in (await message(org["cleo"], sent))["flags"]


async def test_a_quotation_notifies_nobody(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    ben_id = org["ben"].user_id
    quoted = f"@_**Ben|{ben_id}** [said](#narrow):\n```quote\n@**Ben|{ben_id}** @**all**\n```"
    sent = await org["ann"].send("lounge", "t", quoted)
    assert not {"mentioned", "stream_wildcard_mentioned"} & set(
        (await message(org["ben"], sent))["flags"]
    )


# Links


async def test_a_topic_link_points_to_its_newest_message(org: Organization) -> None:
    channel = await org.channel("lounge", "ann")
    first = await org["ann"].send("lounge", "tea", "x")
    content = "#**lounge>tea** #**lounge>none**"
    href = f"/#narrow/channel/{channel}-lounge/topic"
    shown = await rendered(org["ann"], content)
    assert f'href="{href}/tea/with/{first}"' in shown
    assert f'href="{href}/none"' in shown
    second = await org["ann"].send("lounge", "TEA", "y")
    assert f'href="{href}/tea/with/{second}"' in await rendered(org["ann"], content)


async def test_a_private_channel_is_linked_only_by_people_who_see_it(org: Organization) -> None:
    await org.channel("attic", "ben", is_private=True)
    assert 'class="stream"' in await rendered(org["ben"], "#**attic**")
    assert await rendered(org["gus"], "#**attic**") == "<p>#<strong>attic</strong></p>"
    assert await rendered(org["gus"], "#**nowhere**") == "<p>#<strong>nowhere</strong></p>"


async def test_a_topic_s_newest_message_is_revealed_only_to_people_who_may_read_it(
    org: Organization,
) -> None:
    channel = await org.channel("attic", "ben", is_private=True, history_public=False)
    sent = await org["ben"].send("attic", "tea", "x")
    await org.do(
        Subscribed(
            channel_id=channel,
            colors={org["cleo"].user_id: "#76ce90"},
            after=sent,
            gained=(org["cleo"].user_id,),
            count=2,
        )
    )
    assert f"/with/{sent}" in await rendered(org["ben"], "#**attic>tea**")
    shown = await rendered(org["cleo"], "#**attic>tea**")
    assert 'class="stream-topic"' in shown
    assert "/with/" not in shown


async def test_people_are_mentioned_only_by_those_who_can_see_them(org: Organization) -> None:
    await org.do(LIMITED)
    cleo = f"@_**Cleo|{org['cleo'].user_id}** @_**|{org['cleo'].user_id}** @_**Cleo**"
    nobody = "@_**Nemo|99999** @_**|99999** @_**Nemo**"
    assert (await rendered(org["ben"], cleo)).count("user-mention") == 3
    assert "user-mention" not in await rendered(org["gus"], cleo)
    assert "user-mention" not in await rendered(org["gus"], nobody)


async def test_channels_are_linked_only_by_people_who_can_see_them(org: Organization) -> None:
    await org.channel("lounge", "ben")
    assert 'class="stream"' in await rendered(org["cleo"], "#**lounge**")
    assert await rendered(org["gus"], "#**lounge**") == "<p>#<strong>lounge</strong></p>"


async def test_linkifiers_work_in_messages_and_topics(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    ann = org["ann"]
    template = "https://bugs.example/{id}"
    made = await ann.post("/realm/filters", pattern="#(?P<id>[0-9]+)", url_template=template)
    link = {"text": "#12", "url": "https://bugs.example/12"}
    ben = await org["ben"].register(event_types=MESSAGES, apply_markdown=True)
    sent = await ann.send("lounge", "about #12", "see #13")
    (event,) = await ben.events()
    for shown in (event["message"], await message(org["ben"], sent)):
        assert shown["content"] == '<p>see <a href="https://bugs.example/13">#13</a></p>'
        assert shown["topic_links"] == [link]
    (
        await ann.patch(f"/messages/{sent}", topic="no, #14", send_notification_to_new_thread=False)
    ).ok
    (event,) = await ben.events()
    assert event["topic_links"] == [{"text": "#14", "url": "https://bugs.example/14"}]
    (await ann.delete(f"/realm/filters/{made.ok['id']}")).ok
    assert (await message(ann, sent))["topic_links"] == []
    assert await rendered(ann, "see #13") == "<p>see #13</p>"


@pytest.fixture(scope="module")
async def files(shared_org: Organization) -> tuple[str, str]:
    """An image and a document of ann's, for messages in the channel `archive`."""
    await shared_org.channel("archive", "ann")
    pic = await shared_org["ann"].upload("pic.png", picture(100, 50), "image/png")
    return pic, await shared_org["ann"].upload("notes.pdf", b"%PDF", "application/pdf")


@pytest.mark.parametrize(
    ("content", "operand", "has"),
    [
        ("http://a.example", "link", True),
        ("a `http://a.example`", "link", False),
        ("{pic}", "image", True),
        ("!{pic}", "image", True),
        ("> {pic}", "image", False),
        ("{pic}", "attachment", True),
        ("{pic}", "link", True),
        ("{pdf}", "attachment", True),
        ("{pdf}", "link", True),
        ("{pdf}", "image", False),
        ("plain", "link", False),
    ],
)
async def test_attachments_images_and_links_are_searchable(
    shared_org: Organization, files: tuple[str, str], content: str, operand: str, has: bool
) -> None:
    ann, (pic, pdf) = shared_org["ann"], files
    text = content.replace("{pic}", f"[p](/user_uploads/{pic})")
    sent = await ann.send("archive", "t", text.replace("{pdf}", f"[d](/user_uploads/{pdf})"))
    narrow = [{"operator": "has", "operand": operand}]
    found = await ann.get("/messages", anchor="newest", num_before=9, num_after=0, narrow=narrow)
    assert (sent in [one["id"] for one in found.ok["messages"]]) is has


async def test_an_image_is_shown_with_its_size_and_a_thumbnail(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    path = await org["ann"].upload("pic.png", picture(100, 50), "image/png")
    sent = await org["ann"].send("lounge", "t", f"[p](/user_uploads/{path})")
    shown = (await message(org["ben"], sent))["content"]
    assert f'<div class="message_inline_image"><a href="/user_uploads/{path}" title="p">' in shown
    assert 'data-original-content-type="image/png" data-original-dimensions="' in shown
    src = shown.split(' src="')[1].split('"')[0]
    answer = await org["ben"].open(src)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/webp")


# Settings


async def test_the_organization_sets_the_default_language_of_code(org: Organization) -> None:
    (await org["ann"].patch("/realm", default_code_block_language="python")).ok
    assert 'data-code-language="Python"' in await rendered(org["ben"], "```\n1\n```")
    assert "data-code-language" not in await rendered(org["ben"], "```text\n1\n```")


async def test_the_organization_sets_whether_images_are_previewed(org: Organization) -> None:
    path = await org["ben"].upload("pic.png", picture(100, 50), "image/png")
    (await org["ann"].patch("/realm", inline_image_preview=False)).ok
    assert "<img" not in await rendered(org["ben"], f"[p](/user_uploads/{path})")


async def test_people_choose_whether_emoticons_become_emoji(
    org: Organization,
) -> None:
    (await org["ben"].patch("/settings", translate_emoticons=True)).ok
    assert 'class="emoji' in await rendered(org["ben"], "well :)")
    assert await rendered(org["cleo"], "well :)") == "<p>well :)</p>"


async def test_custom_emoji_are_shown_with_their_image_addresses(org: Organization) -> None:
    files = {"file": ("bird.png", picture(100, 50), "image/png")}
    (await org["ann"].raw("POST", "/realm/emoji/party_bird", files=files)).ok
    shown = await rendered(org["ben"], ":party_bird: :zulip:")
    for src in [part.split('"')[0] for part in shown.split(' src="')[1:]]:
        answer = await org["ben"].open(src)
        assert (answer.status_code, answer.headers["content-type"][:6]) == (200, "image/")
    assert shown.count('class="emoji"') == 2


# Text by the server


HARMLESS = ["a **bold** one", "`x`", "[l](http://a.example)", "<b>"]


async def test_names_are_harmless_in_notices(org: Organization) -> None:
    for number, name in enumerate(HARMLESS):
        with row(name):
            channel = await org.channel(f"lounge{number}", "ann")
            description = f"{name}\n```\n@**all** ````\n```quote\nx"
            (await org["ann"].patch(f"/streams/{channel}", description=description)).ok
            (await org["ann"].patch(f"/streams/{channel}", new_name=name)).ok
            narrow = [{"operator": "channel", "operand": channel}]
            page = {"anchor": "newest", "num_before": 9, "num_after": 0, "narrow": narrow}
            found = await org["ann"].get("/messages", **page)
            contents = [one["content"] for one in found.ok["messages"]]
            assert any("changed the description" in content for content in contents)
            for content in contents:
                assert '<span class="user-mention silent"' in content
                assert "channel-wildcard-mention" not in content
                assert "<b>" not in content
                if "changed the description" in content:
                    assert content.count('<div class="codehilite"><pre>') == 2


async def test_descriptions_are_rendered(org: Organization) -> None:
    channel = await org.channel("lounge", "ann")
    (await org["ann"].patch(f"/streams/{channel}", description="**big** :tada:")).ok
    streams = (await org["ann"].get(f"/streams/{channel}")).ok["stream"]
    assert streams["rendered_description"].startswith("<p><strong>big</strong> <span ")


COSTLY = "```python\n'{0}'\n```\n\n$$x_{{{0}}}$$"
"""Code to highlight and a formula, different each time."""


def is_computed(html: str) -> bool:
    """Whether the code is highlighted and the formula laid out."""
    return 'class="s1"' in html and "<msub>" in html


async def test_code_and_formulas_are_rendered_wherever_text_is_written(
    org: Organization,
) -> None:
    ann = org["ann"]
    channel_id = await org.channel("lounge", "ann")
    assert is_computed(await rendered(ann, COSTLY.format(1)))
    message_id = await ann.send("lounge", "t", COSTLY.format(2))
    assert is_computed((await message(ann, message_id))["content"])
    (await ann.patch(f"/messages/{message_id}", content=COSTLY.format(3))).ok
    assert is_computed((await message(ann, message_id))["content"])
    (await ann.patch("/realm", description=COSTLY.format(4))).ok
    folder = {"name": "f", "description": COSTLY.format(5)}
    (await ann.post("/channel_folders/create", **folder)).ok
    found = (await ann.get("/channel_folders")).ok["channel_folders"]
    assert is_computed(found[0]["rendered_description"])
    (await ann.patch(f"/streams/{channel_id}", description="$$x_6$$")).ok
    shown = (await ann.get(f"/streams/{channel_id}")).ok["stream"]["rendered_description"]
    assert "<msub>" in shown


@pytest.mark.parametrize("path", ["/messages", "/messages/render"])
async def test_code_that_a_grammar_cannot_finish_is_plain(org: Organization, path: str) -> None:
    await org.channel("lounge", "ann")
    content = "```bash\n$'" + "\\" * 52 + "\n```"
    said = {"type": "stream", "to": "lounge", "topic": "t"} if path == "/messages" else {}
    reply = (await org["ann"].post(path, content=content, **said)).ok
    html = reply.get("rendered") or (await message(org["ann"], reply["id"]))["content"]
    assert 'data-code-language="Bash"' in html
    assert "<code>$&#39;" in html
