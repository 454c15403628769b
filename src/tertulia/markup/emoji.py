"""Emoji: by name, as characters, and as emoticons."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from tertulia.markup.addresses import custom_address, extra_address
from tertulia.markup.context import RenderContext, add_html, context_of, html_token
from tertulia.markup.elements import element, escaped_text
from tertulia.model.emoji import VARIATION, client_name, codes_by_name, names_by_code, text_of
from tertulia.model.reactions import EXTRA_NAMES

_NAME: Final = re.compile(r":([\w+-]{1,100}):")
_EXTENDING: Final = (
    r"[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\u0300-\u036f\u20d0-\u20ff]"
)
"""Characters that modify the previous one: variation selectors, skin tones, tags of flags,
combining marks."""
_FIRST: Final = "0-9#*\u00a9\u00ae\u203c-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
"""Ranges with the first character of every emoji."""
_FIRST_ALONE: Final = 0x2300
"""The first character that is an emoji by itself. Lower ones, such as arrows, need a variation
selector."""
_EMOTICONS: Final[Mapping[str, str]] = {
    ":)": "smile",
    ":-)": "smile",
    "(:": "smile",
    ":(": "frown",
    ":-(": "frown",
    "<3": "heart",
    ":|": "expressionless",
    ":/": "confused",
    ":-/": "confused",
    ";)": "wink",
    ";-)": "wink",
    ":D": "grinning",
    ":-D": "grinning",
    ":P": "stuck_out_tongue",
    ":p": "stuck_out_tongue",
    ":o": "open_mouth",
    ":O": "open_mouth",
    ":'(": "cry",
}
_EMOTICON: Final = re.compile(
    r"(?<![^\s,.;?!()\[\]\"'])(?:"
    + "|".join(map(re.escape, sorted(_EMOTICONS, key=len, reverse=True)))
    + r")(?![^\s,.;?!()\[\]\"'])"
)


def by_name(state: StateInline, silent: bool) -> bool:
    """Parse `:name:`, a Unicode or custom emoji."""
    if state.src[state.pos] != ":":
        return False
    if context_of(state).is_plain:
        return False
    match = _NAME.match(state.src, state.pos, state.posMax)
    html = None if match is None else named_emoji(context_of(state), match[1])
    if match is None or html is None:
        return False
    if not silent:
        add_html(state, html)
    state.pos = match.end()
    return True


def named_emoji(context: RenderContext, name: str) -> str | None:
    """Return the emoji's HTML, or None. Custom emoji come first."""
    emoji_id = context.state.custom_emoji.by_name.get(name)
    if context.names is not None:
        emoji_id = _custom_then(context, name, emoji_id)
    if emoji_id is not None:
        file = context.state.custom_emoji[emoji_id].file
        return _picture(name, custom_address(context.state.realm.id, file))
    if name in EXTRA_NAMES:
        return _picture(name, extra_address(name))
    code = codes_by_name().get(name)
    return None if code is None else _character(code, client_name(code, name))


def _custom_then(context: RenderContext, name: str, emoji_id: int | None) -> int | None:
    """Return the custom emoji that the name referred to when the text was written. It may be
    deactivated now, or new."""
    if context.names is None or name not in context.names.emoji:
        return None
    if emoji_id is not None:
        return emoji_id
    return max(
        (emoji.id for emoji in context.state.custom_emoji if emoji.name == name), default=None
    )


def _picture(name: str, address: str) -> str:
    return element(
        "img",
        {"alt": f":{name}:", "class": "emoji", "src": address, "title": name.replace("_", " ")},
    )


@cache
def _character(code: str, name: str) -> str:
    label = name.replace("_", " ")
    attributes = {
        "aria-label": label,
        "class": f"emoji emoji-{code}",
        "role": "img",
        "title": label,
    }
    return element("span", attributes, f":{name}:")


@cache
def _cluster() -> re.Pattern[str]:
    """Return a pattern for a whole emoji sequence, known or not, that never matches just the
    beginning of a longer one."""
    first = "".join(sorted({re.escape(text_of(code)[0]) for code in names_by_code()}))
    # Sequences of later Unicode versions match too. A pattern that begins with a few ranges skips
    # other text quickly.
    return re.compile(
        rf"[{_FIRST}](?:(?<=[\U0001f1e6-\U0001f1ff])[\U0001f1e6-\U0001f1ff]{_EXTENDING}*"
        rf"|(?<=[0-9#*])\ufe0f?\u20e3"
        rf"|(?<=[{first}\U0001f000-\U0001faff]){_EXTENDING}*(?:\u200d.{_EXTENDING}*)*)"
    )


@cache
def _codes() -> Mapping[str, str]:
    """Return emoji codes by text, without variation selectors."""
    return {text_of(code): code for code in names_by_code()}


def characters(context: RenderContext, text: str) -> list[Token | str] | None:
    """Return the text as HTML with emoji as elements, or None without emoji. Sequences without a
    name (skin tones, professions with them, families) stay unchanged."""
    if context.is_plain or text.isascii():
        return None
    plain = escaped_text(text)
    html = _cluster().sub(_shown, plain)
    return None if html == plain else [html_token(html)]


def _shown(match: re.Match[str]) -> str:
    sign = match[0]
    code = _codes().get(sign.replace(VARIATION, ""))
    if code is None or (len(sign) == 1 and ord(sign) < _FIRST_ALONE):
        return sign
    return _character(code, names_by_code()[code][0])


def emoticons(context: RenderContext, text: str) -> list[Token | str] | None:
    """Replace emoticons with emoji, if the author has turned that on. Return None without
    emoticons."""
    author = context.author
    settings = None if author is None else context.state.settings.get(author.id)
    if context.is_plain or settings is None or not settings.translate_emoticons:
        return None
    parts: list[Token | str] = []
    done = 0
    for match in _EMOTICON.finditer(text):
        html = named_emoji(context, _EMOTICONS[match[0]])
        if html is not None:
            parts.extend((text[done : match.start()], html_token(html)))
            done = match.end()
    if not parts:
        return None
    parts.append(text[done:])
    return parts
