"""Markdown to HTML, with what the message refers to gathered on the way."""

import re
from dataclasses import dataclass, field
from html import escape
from urllib.parse import quote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline, emphasis
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from tertulia.model.channels import Channel
from tertulia.model.messages import Rendered
from tertulia.model.users import User
from tertulia.state.organization import State

_WILDCARDS_CHANNEL = frozenset({"all", "everyone", "channel", "stream"})
_WILDCARD_TOPIC = "topic"
_MENTION = re.compile(r"@(_?)\*\*([^*\n]+)\*\*")
_CHANNEL = re.compile(r"#\*\*([^*>\n]+)\*\*")
_PLAIN_FENCES = frozenset({"", "text", "none", "quote", "spoiler", "math"})
"""Words after a fence that are no programming language."""
_RULES = [
    *("newline", "linkify", "backticks", "strikethrough", "emphasis"),
    *("balance_pairs", "fragments_join", "fence", "code", "blockquote"),
]
_SAFE_SCHEMES = frozenset({"http", "https", "mailto"})


@dataclass
class _Mentioned:
    """What the rules gather while they parse."""

    users: set[int] = field(default_factory=set)
    all: bool = False
    topic: bool = False


class Renderer:
    """Renders with the names of one organization."""

    def __init__(self) -> None:
        self._markdown = MarkdownIt("zero", {"breaks": True, "linkify": True, "html": False})
        self._markdown.enable(_RULES)
        self._markdown.validateLink = _is_safe  # type: ignore[method-assign]  # its way
        self._markdown.inline.ruler.at("emphasis", _emphasis)
        self._markdown.inline.ruler.push("mention", _mention)
        self._markdown.inline.ruler.before("linkify", "channel", _channel)
        for name, show in _SHOWN.items():
            self._markdown.add_render_rule(name, show)

    def render(self, state: State, content: str) -> Rendered:
        """The content as HTML. Every input renders; what is no markup is shown as text."""
        mentioned = _Mentioned()
        environment: EnvType = {"state": state, "mentioned": mentioned}
        html = self._markdown.render(content, environment).rstrip("\n")
        return Rendered(
            html=html,
            mentions=frozenset(mentioned.users),
            mentions_all=mentioned.all,
            mentions_topic=mentioned.topic,
            has_link="<a href=" in html,
            is_me=content.startswith("/me ") and html.count("<p>") == 1,
        )


def _is_safe(url: str) -> bool:
    return urlsplit(url).scheme.lower() in _SAFE_SCHEMES


def _emphasis(state: StateInline, silent: bool) -> bool:
    """Asterisks emphasize; underscores stand in too many names."""
    return state.src[state.pos] == "*" and emphasis.tokenize(state, silent)


def _channel(state: StateInline, silent: bool) -> bool:
    """`#**name**`. The channel's name was written by the author: linking it tells nothing."""
    if state.src[state.pos] != "#":
        return False
    match = _CHANNEL.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    organization: State = state.env["state"]
    channel = organization.channel_named(match[1])
    if channel is None or channel.is_private:
        return False
    if not silent:
        state.push("channel", "", 0).meta = {"channel": channel}
    state.pos = match.end()
    return True


def _mention(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "@":
        return False
    match = _MENTION.match(state.src, state.pos, state.posMax)
    if match is None:
        return False
    quiet, name = bool(match[1]), match[2].strip()
    found = _whom(state.env["state"], name)
    if found is None:
        return False
    if not silent:
        mentioned: _Mentioned = state.env["mentioned"]
        token = state.push("mention", "", 0)
        token.meta = {"quiet": quiet, "whom": found}
        if not quiet:
            if isinstance(found, User):
                mentioned.users.add(found.id)
            elif found == _WILDCARD_TOPIC:
                mentioned.topic = True
            else:
                mentioned.all = True
    state.pos = match.end()
    return True


def _whom(organization: State, name: str) -> User | str | None:
    """`Name`, `Name|17` or `|17`; or a wildcard's word."""
    if name in _WILDCARDS_CHANNEL or name == _WILDCARD_TOPIC:
        return name
    full_name, bar, number = name.rpartition("|")
    if bar and number.isascii() and number.isdigit():
        user = organization.users.get(int(number))
        if user is not None and (not full_name or user.full_name == full_name):
            return user
    if name not in organization.users_by_name:
        return None
    return organization.users[min(organization.users_by_name[name])]


def _show_mention(
    _self: RendererHTML, tokens: list[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    quiet, whom = tokens[index].meta["quiet"], tokens[index].meta["whom"]
    sign, extra = ("", " silent") if quiet else ("@", "")
    if isinstance(whom, User):
        name = escape(whom.full_name)
        return f'<span class="user-mention{extra}" data-user-id="{whom.id}">{sign}{name}</span>'
    if whom == _WILDCARD_TOPIC:
        return f'<span class="topic-mention{extra}">{sign}{whom}</span>'
    kind = f"user-mention channel-wildcard-mention{extra}"
    return f'<span class="{kind}" data-user-id="*">{sign}{whom}</span>'


def _show_channel(
    _self: RendererHTML, tokens: list[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    channel: Channel = tokens[index].meta["channel"]
    # Dots stand for percent signs, which many programs would decode in passing.
    slug = quote(channel.name.replace(" ", "-"), safe="").replace(".", "%2E").replace("%", ".")
    href = f"/#narrow/channel/{channel.id}-{slug}"
    name = escape(channel.name)
    return f'<a class="stream" data-stream-id="{channel.id}" href="{href}">#{name}</a>'


def _show_code(
    _self: RendererHTML, tokens: list[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    token = tokens[index]
    language = token.info.strip().split(maxsplit=1)[0] if token.info.strip() else ""
    attribute = "" if language in _PLAIN_FENCES else f' data-code-language="{escape(language)}"'
    code = escape(token.content)
    return f'<div class="codehilite"{attribute}><pre><span></span><code>{code}</code></pre></div>\n'


def _show_deleted(
    _self: RendererHTML, tokens: list[Token], index: int, _options: OptionsDict, _env: EnvType
) -> str:
    return "<del>" if tokens[index].nesting > 0 else "</del>"


_SHOWN = {
    "mention": _show_mention,
    "channel": _show_channel,
    "fence": _show_code,
    "code_block": _show_code,
    "s_open": _show_deleted,
    "s_close": _show_deleted,
}
