"""Slack's markup becomes Markdown that looks the same."""

from typing import Any

import pytest

from tertulia.imports.emoji_aliases import emoji_named, slack_emoji, with_own_names
from tertulia.imports.slack import mrkdwn
from tertulia.imports.slack.blocks import BlockConverter
from tertulia.imports.slack.mrkdwn import MrkdwnConverter
from tests.support import rows


class Known:
    """A lookup that knows `U1` and `C1`."""

    def person(self, key: str, label: str) -> str:
        return f"@**{label or key}**"

    def group(self, key: str, label: str) -> str:
        return f"@*{label or key}*"

    def channel(self, key: str, label: str) -> str:
        return f"#**{label or key}**"

    def link(self, url: str, label: str) -> str | None:
        return f"[{label or 'there'}](HERE)" if url.startswith("https://acme.slack.com/") else None

    def name_of(self, key: str) -> str:
        return {"U1": "Ann", "C1": "general"}.get(key, "")


@rows(
    ("given", "expected"),
    [
        ("plain", "plain"),
        ("*bold* _italic_ ~gone~", "**bold** *italic* ~~gone~~"),
        ("*bold _both_*", "**bold *both***"),
        ("(*a*, _b_)", "(**a**, *b*)"),
        ("snake_case_name and 2*3*4", r"snake_case_name and 2\*3\*4"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("* not a list", r"\* not a list"),
        ("*not bold", r"\*not bold"),
        ("* no *", r"\* no \*"),
        ("*over\nlines*", "\\*over\nlines\\*"),
        ("`code *x* &amp; y`", "`code *x* & y`"),
        ("`a", r"\`a"),
        ("see `<https://a.example.com|a.example.com>`", "see `a.example.com`"),
        ("```\na &lt; b\n```", "```\na < b\n```"),
        ("before ```x``` after", "before\n```\nx\n```\n after"),
        ("```never closed", r"\`\`\`never closed"),
        ("&gt; quoted\nanswer", "> quoted\n\nanswer"),
        ("a\n&gt; b\n&gt; c", "a\n> b\n> c"),
        ("&gt;&gt;&gt; all\nthe rest", "> all\n> the rest"),
        ("a &gt; b &amp;amp; c &lt;b&gt;", "a > b &amp; c <b>"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("• one\n• two\n    ◦ three\nend", "* one\n* two\n  * three\n\nend"),
        ("# no heading\n#tag", "\\# no heading\n#tag"),
        ("[no](http://x)", r"[no\](http://x)"),
        ("@**all** #**general**", r"@\*\*all\*\* #\*\*general\*\*"),
        ("<@U1> <@U2|ben> <@U1>", "@**U1** @**ben** @**U1**"),
        ("hi<@U1>", "hi @**U1**"),
        ("*<@U1> said*", "@**U1** **said**"),
        ("<#C1> <#C2|dev> <#C3|>", "#**C1** #**dev** #**C3**"),
        ("<!here> <!channel|channel> <!everyone>", "@**all** @**all** @**all**"),
        ("<!subteam^S1|@ops> <!subteam^S2>", "@*@ops* @*S2*"),
        ("<!date^1392734382^{date}|Feb 18>", "<time:2014-02-18T14:39:42Z>"),
        ("<!date^never^{date}|some day>", "some day"),
        ("<!unknown|label> <!odd>", "label <!odd>"),
        ("<https://a.example.com/x_y*z*>", "[https://a.example.com/x_y\\*z\\*](https://a.example.com/x_y*z*)"),
        ("<https://a.example.com/b> ok", "https://a.example.com/b ok"),
        ("<https://a.example.com/b>ok", "[https://a.example.com/b](https://a.example.com/b)ok"),
        ("<http://a.example.com|a.example.com>", "http://a.example.com"),
        ("<https://a.example.com?a=1&amp;b=2|the [page]>", r"[the \[page\]](https://a.example.com?a=1&b=2)"),
        ("<https://a.example.com/(x)|y>", "[y](https://a.example.com/%28x%29)"),
        ("*<https://a.example.com|bold link>*", "**[bold link](https://a.example.com)**"),
        ("<mailto:a@example.com|a@example.com>", "a@example.com"),
        ("<mailto:a@example.com|write>", "[write](mailto:a@example.com)"),
        ("<javascript:alert(1)|click>", "click"),
        ("<https://acme.slack.com/archives/C1/p1|here>", "[here](HERE)"),
        (":thumbsup: :x: :wave::skin-tone-3:", ":+1: :cross_mark: :wave:"),
        (":shipit: :shipit::skin-tone-2:", ":shipit: :shipit:"),
        ("10:30:45", "10:30:45"),
        ("back\\*slash", r"back\\\*slash"),
        ("a\x00\x02P\x1f1\x1fx\x03b", "aP1xb"),
    ],
)  # fmt: skip
def test_mrkdwn(given: str, expected: str) -> None:
    assert MrkdwnConverter(Known()).mrkdwn(given) == expected


def styled(text: str, *styles: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "style": dict.fromkeys(styles, True)}


def section(*elements: Any) -> dict[str, Any]:
    return {"type": "rich_text_section", "elements": list(elements)}


def rich(*elements: Any) -> dict[str, Any]:
    return {"type": "rich_text", "elements": list(elements)}


def bullets(indent: int, *texts: str, style: str = "bullet", **more: Any) -> dict[str, Any]:
    sections = [section(styled(text)) for text in texts]
    return {
        "type": "rich_text_list",
        "style": style,
        "indent": indent,
        "elements": sections,
        **more,
    }


@rows(
    ("block", "expected"),
    [
        (rich(section(styled("a "), styled("bold ", "bold"), styled("c"))), "a **bold** c"),
        (
            rich(
                section(styled("a", "bold"), styled("b", "bold", "italic"), styled("c", "strike"))
            ),
            "**a*b***~~c~~",
        ),
        (rich(section(styled("one\n\ntwo", "bold"))), "**one**\n\n**two**"),
        (rich(section(styled("f(x)", "code"), styled(" 1 &lt; 2 *"))), r"`f(x)` 1 < 2 \*"),
        (rich(section(styled("> no quote\n# no heading"))), "\\> no quote\n\\# no heading"),
        (
            rich(
                section({"type": "user", "user_id": "U1"}, {"type": "broadcast", "range": "here"})
            ),
            "@**U1** @**all**",
        ),
        (
            rich(
                section({"type": "emoji", "name": "tada", "unicode": "1f389"}, styled(" ")),
                section({"type": "channel", "channel_id": "C1"}),
            ),
            ":tada:\n#**C1**",
        ),
        (
            rich(section({"type": "link", "url": "https://a.example.com/", "text": "a"})),
            "[a](https://a.example.com/)",
        ),
        (
            rich(
                bullets(0, "one"), bullets(1, "two\nlines", style="ordered"), section(styled("x"))
            ),
            "* one\n  1. two\n    lines\n\nx",
        ),
        (rich(bullets(0, "five", style="ordered", offset=4)), "5. five"),
        (
            rich({"type": "rich_text_quote", "elements": [styled("a\nb")]}, section(styled("c"))),
            "> a\n> b\n\nc",
        ),
        (
            rich({"type": "rich_text_preformatted", "language": "py", "elements": [styled("```")]}),
            "````py\n```\n````",
        ),
        ({"type": "header", "text": {"type": "plain_text", "text": "Hi *you*"}}, r"Hi \*you\*"),
        ({"type": "header", "text": {"type": "plain_text", "text": "Alert"}}, "**Alert**"),
        (
            {
                "type": "section",
                "text": {"type": "mrkdwn", "text": "*a*"},
                "fields": [{"type": "plain_text", "text": "*b*"}],
            },
            "**a**\n\\*b\\*",
        ),
        (
            {"type": "image", "image_url": "https://a.example.com/p.png", "alt_text": "A plot"},
            "[A plot](https://a.example.com/p.png)",
        ),
        (
            {
                "type": "actions",
                "elements": [
                    {"type": "button", "text": {"text": "Open"}, "url": "https://a.example.com/"},
                    {"type": "button", "text": {"text": "Retry"}},
                ],
            },
            "[Open](https://a.example.com/) · Retry",
        ),
        (
            {"type": "table", "rows": [[{"text": "a|b"}, {"text": "c"}], [{"text": "1"}, "?"]]},
            "| a\\|b | c |\n| --- | --- |\n| 1 |",
        ),
        ({"type": "markdown", "text": "**md** @**all**"}, r"**md** @\*\*all**"),
        ({"type": "rich_text", "elements": "?"}, ""),
        ({"type": 5}, ""),
        ({"type": "section", "text": ["?"], "fields": {"a": 1}, "accessory": 3}, ""),
        (rich({"type": "rich_text_list", "indent": "x", "elements": [3, {}]}), "*"),
    ],
)
def test_blocks(block: dict[str, Any], expected: str) -> None:
    found = BlockConverter(MrkdwnConverter(Known()), lambda _: None).of({"blocks": [block]})
    assert found.strip() == expected


def test_unknown_blocks_are_reported() -> None:
    seen: list[str] = []
    BlockConverter(MrkdwnConverter(Known()), seen.append).of({"blocks": [{"type": "hologram"}]})
    assert seen == ["hologram"]


def test_rich_text_that_is_not_escaped_stays_as_it_is() -> None:
    blocks = BlockConverter(MrkdwnConverter(Known()), lambda _: None)
    given = {"blocks": [rich(section(styled("type &lt; for <")))]}
    assert blocks.of(given, is_escaped=False) == "type &lt; for <"


@rows(
    ("attachment", "expected"),
    [
        (
            {
                "pretext": "Look:",
                "author_name": "CI",
                "title": "Build",
                "title_link": "https://ci.example.com/",
                "text": "*ok*",
                "fields": [{"title": "Env", "value": "prod"}],
                "footer": "now",
            },
            "Look:\n> CI\n> **[Build](https://ci.example.com/)**\n> **ok**\n> **Env**: prod\n> now",
        ),
        ({"fallback": "only this"}, "> only this"),
        ({"from_url": "https://a.example.com/", "title": "A preview"}, ""),
        (
            {
                "is_msg_unfurl": True,
                "author_name": "Ben",
                "from_url": "https://acme.slack.com/archives/C1/p1",
                "text": "what *he* said",
            },
            "[Ben](HERE):\n> what **he** said",
        ),
        ({"text": 5, "fields": [None, {"title": []}]}, ""),
    ],
)
def test_attachments(attachment: dict[str, Any], expected: str) -> None:
    blocks = BlockConverter(MrkdwnConverter(Known()), lambda _: None)
    found = blocks.attachments({"attachments": [attachment]}, "see https://a.example.com/")
    assert mrkdwn.joined(found) == expected


@rows(
    ("name", "code"),
    [
        ("thumbsup", "1f44d"),
        ("+1::skin-tone-4", "1f44d"),
        ("x", "274c"),
        ("simple_smile", "1f642"),
        ("flag-pt", "1f1f5-1f1f9"),
        ("man-shrugging", "1f937-200d-2642"),
        ("flag-zz", None),
        ("partyparrot", None),
    ],
)
def test_emoji_have_the_code_that_slack_means(name: str, code: str | None) -> None:
    found = slack_emoji(name)
    assert (None if found is None else found.code) == code


@rows(
    ("name", "code"),
    [
        ("x", "274c"),
        ("calendar", "1f4c6"),
        ("face_with_3_hearts", "1f970"),
        ("wave_medium_skin_tone", "1f44b"),
        ("flag_pt", "1f1f5-1f1f9"),
        ("woman_artist", "1f469-200d-1f3a8"),
        ("partyparrot", None),
    ],
)
def test_emoji_have_the_code_that_mattermost_and_rocketchat_mean(
    name: str, code: str | None
) -> None:
    found = emoji_named(name)
    assert (None if found is None else found.code) == code


def test_emoji_in_texts_have_the_names_of_here() -> None:
    assert with_own_names("a :x: :tada: :scone:", {"scone"}) == "a :cross_mark: :tada: :scone:"


@rows(
    ("text", "expected"),
    [
        ("*Hi* <@U1>, see\n<#C1> `x` :tada:", "Hi @Ann, see #general x 🎉"),
        ("&gt; a &amp; b", "a & b"),
        ("<https://a.example.com|the page> <!here>", "the page @here"),
    ],
)
def test_plain_text(text: str, expected: str) -> None:
    assert mrkdwn.plain(text, Known()) == expected


@pytest.mark.parametrize("text", ["*" * 200_000, "`" * 99_999, "<" * 200_000, "_a " * 50_000])
def test_long_runs_of_signs_are_converted(text: str) -> None:
    assert MrkdwnConverter(Known()).mrkdwn(text)
