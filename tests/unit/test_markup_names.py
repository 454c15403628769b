"""Markdown to HTML: people, groups, channels, topics, messages, and emoji."""

import pytest

from tertulia.model.emoji import names_by_code
from tests.unit.markup_organization import ANN, BEN, EVE, STATE, html, line, rendered

USER = '<span class="user-mention{}" data-user-id="{}">{}</span>'
ALL = '<span class="user-mention channel-wildcard-mention{}" data-user-id="*">{}</span>'
GROUP = '<span class="user-group-mention{}" data-user-group-id="{}">{}</span>'
ANN_SHOWN = USER.format("", ANN, "@Ann")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("@**Ann**", ANN_SHOWN),
        ("@_**Ann**", USER.format(" silent", ANN, "Ann")),
        (f"@**Ann|{ANN}**", ANN_SHOWN),
        (f"@**|{BEN}**", USER.format("", BEN, "@Ben &lt;B&gt;")),
        (f"@_**|{BEN}**", USER.format(" silent", BEN, "Ben &lt;B&gt;")),
        ("@**Twin**", USER.format("", 112, "@Twin")),
        ("@**Twin|113**", USER.format("", 113, "@Twin")),
        (f"@**Eve|{ANN}**", f"@<strong>Eve|{ANN}</strong>"),
        ("@**|9999**", "@<strong>|9999</strong>"),
        ("@**Nobody**", "@<strong>Nobody</strong>"),
        ("@**|²**", "@<strong>|²</strong>"),
        ("@**all**", ALL.format("", "@all")),
        ("@**everyone**", ALL.format("", "@everyone")),
        ("@**channel**", ALL.format("", "@channel")),
        ("@**stream**", ALL.format("", "@stream")),
        ("@_**all**", ALL.format(" silent", "all")),
        ("@**topic**", '<span class="topic-mention">@topic</span>'),
        ("@_**topic**", '<span class="topic-mention silent">topic</span>'),
        ("@*cooks*", GROUP.format("", 20, "@cooks")),
        ("@_*cooks*", GROUP.format(" silent", 20, "cooks")),
        ("@*gone*", "@<em>gone</em>"),
        ("@_*gone*", GROUP.format(" silent", 21, "gone")),
        ("@*role:members*", "@<em>role:members</em>"),
        ("@_*role:members*", GROUP.format(" silent", 6, "Members")),
        ("@*quiet*", "@<em>quiet</em>"),
        ("@_*quiet*", GROUP.format(" silent", 22, "quiet")),
        ("@*nobody here*", "@<em>nobody here</em>"),
        ("(@**Ann**)", f"({ANN_SHOWN})"),
        ("'@**Ann**", f"'{ANN_SHOWN}"),
        ("x@**Ann**", "x@<strong>Ann</strong>"),
        ("`@**Ann**`", "<code>@**Ann**</code>"),
        ("@**Ann", "@**Ann"),
        ("**@**Ann****", None),
    ],
)
def test_names_become_mentions(content: str, expected: str | None) -> None:
    if expected is None:
        assert "user-mention" not in line(content)
    else:
        assert line(content) == expected


def test_a_restricted_group_is_notified_only_by_those_permitted() -> None:
    assert line("@*quiet*", EVE) == GROUP.format("", 22, "@quiet")
    assert rendered("@*quiet*", EVE).mentioned_groups == {22}
    assert rendered("@*quiet*", ANN).mentioned_groups == frozenset()
    assert rendered("@*quiet*", None).mentioned_groups == frozenset()


@pytest.mark.parametrize(
    ("content", "users", "groups", "everybody", "topic"),
    [
        (f"@**Ann** and @**|{BEN}**", {ANN, BEN}, set(), False, False),
        ("@_**Ann** @_**all** @_*cooks* @_**topic**", set(), set(), False, False),
        ("@**everyone** @**topic**", set(), set(), True, True),
        ("@*cooks*", set(), {20}, False, False),
        ("`@**Ann**`\n```\n@**all**\n```", set(), set(), False, False),
        ("> @**Ann** @**all** @*cooks*", set(), set(), False, False),
        ("```quote\n@**Ann**\n```\n@**topic**", set(), set(), False, True),
        ("* @**Ann**\n\n|a|\n|-|\n|@**all**|", {ANN}, set(), True, False),
        ("@**Nobody**", set(), set(), False, False),
        ("[@**Ann**](http://a.example)", {ANN}, set(), False, False),
    ],
)
def test_a_mention_notifies(
    content: str, users: set[int], groups: set[int], everybody: bool, topic: bool
) -> None:
    found = rendered(content)
    assert found.mentions == users
    assert found.mentioned_groups == groups
    assert (found.mentions_all, found.mentions_topic) == (everybody, topic)


def test_a_mention_in_a_quotation_is_silent() -> None:
    assert html("> @**Ann** @**all**") == (
        f"<blockquote>\n<p>{USER.format(' silent', ANN, 'Ann')} {ALL.format(' silent', 'all')}"
        "</p>\n</blockquote>"
    )


# Channels

SLUG = "/#narrow/channel/3-tea-.26-cake-v1.2E0"
NAME = "#tea &amp; cake v1.0"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            "#**tea & cake v1.0**",
            f'<a class="stream" data-stream-id="3" href="{SLUG}">{NAME}</a>',
        ),
        (
            "#**tea & cake v1.0>now**",
            f'<a class="stream-topic" data-stream-id="3" href="{SLUG}/topic/now/with/77">{NAME}'
            " &gt; now</a>",
        ),
        (
            "#**tea & cake v1.0>é.?**",
            f'<a class="stream-topic" data-stream-id="3" href="{SLUG}/topic/.C3.A9.2E.3F">{NAME}'
            " &gt; é.?</a>",
        ),
        (
            "#**tea & cake v1.0>**",
            f'<a class="stream-topic" data-stream-id="3" href="{SLUG}/topic//with/78">{NAME}'
            " &gt; <em>general chat</em></a>",
        ),
        (
            "#**tea & cake v1.0>now@12**",
            f'<a class="message-link" href="{SLUG}/topic/now/near/12">{NAME} &gt; now @ 💬</a>',
        ),
        ("#**secret**", "#<strong>secret</strong>"),
        ("#**secret>now**", "#<strong>secret&gt;now</strong>"),
        ("#**nowhere**", "#<strong>nowhere</strong>"),
        ("`#**tea & cake v1.0**`", "<code>#**tea &amp; cake v1.0**</code>"),
    ],
)
def test_channels_topics_and_messages_are_linked(content: str, expected: str) -> None:
    assert line(content) == expected


def test_a_private_channel_is_linked_by_people_who_can_see_it() -> None:
    link = '<a class="stream" data-stream-id="4" href="/#narrow/channel/4-secret">#secret</a>'
    assert line("#**secret**", EVE) == link
    assert line("#**secret**", None) == "#<strong>secret</strong>"


# Emoji

SPAN = '<span aria-label="{0}" class="emoji emoji-{1}" role="img" title="{0}">:{2}:</span>'
IMG = '<img alt=":{0}:" class="emoji" src="{1}" title="{2}">'


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (":thumbs_up:", SPAN.format("thumbs up", "1f44d", "thumbs_up")),
        (":+1:", SPAN.format("+1", "1f44d", "+1")),
        ("👍", SPAN.format("+1", "1f44d", "+1")),
        (":hankey: 💩", " ".join([SPAN.format("poop", "1f4a9", "poop")] * 2)),
        (":x:", SPAN.format("x", "274e", "x")),
        ("❤️", SPAN.format("heart", "2764", "heart")),
        ("❤", SPAN.format("heart", "2764", "heart")),
        ("a👍b", "a" + SPAN.format("+1", "1f44d", "+1") + "b"),
        ("© ™ 1 # →", "© ™ 1 # →"),
        (
            ":party_bird:",
            IMG.format("party_bird", "/user_avatars/1/emoji/images/5.gif", "party bird"),
        ),
        (":tada:", IMG.format("tada", "/user_avatars/1/emoji/images/7.png", "tada")),
        (
            ":zulip:",
            IMG.format("zulip", "/static/generated/emoji/images/emoji/unicode/zulip.png", "zulip"),
        ),
        (":retired: :unknown: 10:20:30", ":retired: :unknown: 10:20:30"),
        ("`:smile:` `👍`", "<code>:smile:</code> <code>👍</code>"),
        (":) :/ <3", ":) :/ &lt;3"),
    ],
)
def test_emoji_are_shown_by_their_kind(content: str, expected: str) -> None:
    assert line(content) == expected


@pytest.mark.parametrize(
    ("sign", "code"),
    [
        ("🇺🇸", "1f1fa-1f1f8"),
        ("👨‍👩‍👧‍👦", "1f468-200d-1f469-200d-1f467-200d-1f466"),
        ("1️⃣", "0031-20e3"),
        ("❤️‍🔥", "2764-200d-1f525"),
        ("🏴󠁧󠁢󠁥󠁮󠁧󠁿", None),
        ("👁️‍🗨️", "1f441-200d-1f5e8"),
        # A sequence without a name is shown unchanged, never as its start and a rest.
        ("👍🏽", None),
        ("👩🏽‍💻", None),
        ("🤷🏻‍♂️", None),
        ("🧑🏻‍🤝‍🧑🏿", None),
        ("👍‍👍", None),
        ("🫿‍👍", None),
        ("😀⃠", None),
        ("❤︎", None),
        ("🇺", None),
    ],
)
def test_a_grapheme_is_never_split(sign: str, code: str | None) -> None:
    shown = sign
    if code is None and sign[0] == "🏴":
        code = "-".join(f"{ord(one):x}" for one in sign)
    if code is not None:
        name = names_by_code()[code][0]
        shown = SPAN.format(name.replace("_", " "), code, name)
    thumb = SPAN.format("+1", "1f44d", "+1")
    assert line(f"a{sign}b {sign}👍") == f"a{shown}b {shown}{thumb}"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (":)", SPAN.format("smile", "1f642", "smile")),
        ("a :) b", "a " + SPAN.format("smile", "1f642", "smile") + " b"),
        ("<3", SPAN.format("heart", "2764", "heart")),
        ("a:) :)b", "a:) :)b"),
        ("(a :)).", "(a " + SPAN.format("smile", "1f642", "smile") + ")."),
        (
            '":)", <3!',
            f'"{SPAN.format("smile", "1f642", "smile")}", {SPAN.format("heart", "2764", "heart")}!',
        ),
        ("`:)`", "<code>:)</code>"),
        ("http://a.example/ :)", None),
    ],
)
def test_emoticons_are_converted_for_people_who_want_it(content: str, expected: str | None) -> None:
    assert "emoji" not in line(content, ANN)
    shown = line(content, EVE)
    assert (
        shown == expected
        if expected is not None
        else shown.endswith(" " + SPAN.format("smile", "1f642", "smile"))
    )


def test_only_the_author_s_setting_counts() -> None:
    assert STATE.settings.get(EVE) is not None
    assert line(":)", None) == ":)"
