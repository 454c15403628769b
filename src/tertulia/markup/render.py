"""Markdown to HTML, with what the message refers to gathered on the way."""

import re
from dataclasses import dataclass, field
from html import escape
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from tertulia.model.messages import Rendered
from tertulia.model.users import User
from tertulia.state.organization import State

_WILDCARDS_CHANNEL = frozenset({"all", "everyone", "channel", "stream"})
_WILDCARD_TOPIC = "topic"
_MENTION = re.compile(r"@(_?)\*\*([^*\n]+)\*\*")
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
        self._markdown.enable(["newline", "linkify"])
        self._markdown.validateLink = _is_safe  # type: ignore[method-assign]
        self._markdown.inline.ruler.push("mention", _mention)
        self._markdown.add_render_rule("mention", _show_mention)

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
