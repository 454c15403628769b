"""The texts of emails, push notifications, pages, and the bots' messages, in each language.

They are nested JSON files of ICU messages, as the web client's are (`web/words`). A message may
have `{arguments}` and `{count, plural, …}`. A language is read when it is first used.
"""

import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

import msgspec

from tertulia.model.users import User
from tertulia.state.state import State

LANGUAGES: Final = tuple(
    sorted(
        file.name.removesuffix(".json")
        for file in resources.files(__name__).iterdir()
        if file.name.endswith(".json")
    )
)
"""Language tags. `pt` is Brazilian Portuguese. The web client has the same languages."""

_FORM: Final = r"(=\d+|\w+) \{((?:[^{}]|\{\w+\})*)\}"
_FORMS: Final = re.compile(_FORM)
_PLURAL: Final = re.compile(rf"\{{(\w+), plural, ((?:{_FORM}\s*)+)\}}")


class Texts:
    """The texts of one part, such as `pages`, in one language."""

    def __init__(self, language: str, texts: Mapping[str, Any]) -> None:
        self.language = language
        self.texts = texts

    def __call__(self, name: str, /, **arguments: object) -> str:
        """Return the text with that name, with its arguments filled in."""
        return self.filled(self.texts[name], **arguments)

    def filled(self, message: str, /, **arguments: object) -> str:
        """Return the message with its arguments filled in. An argument isn't read as a message."""
        if not arguments:
            return message
        chosen = _PLURAL.sub(lambda match: self._form(match, arguments), message)
        return chosen.format_map(arguments)

    def _form(self, match: re.Match[str], arguments: Mapping[str, Any]) -> str:
        """Return the form of a plural argument that fits its number."""
        name, count = match[1], arguments[match[1]]
        forms = dict(_FORMS.findall(match[2]))
        form = forms.get(f"={count}") or forms.get(_category(self.language, count))
        return str(form or forms["other"]).replace("#", f"{{{name}}}")


def _category(language: str, count: int) -> str:
    from babel import Locale  # Imported by the first text with a plural form.

    return str(Locale.parse(language).plural_form(count))


@cache
def _all(language: str) -> dict[str, Any]:
    content = resources.files(__name__).joinpath(f"{language}.json").read_bytes()
    return msgspec.json.decode(content, type=dict[str, Any])


@cache
def texts(language: str, part: str) -> Texts:
    """Return a part's texts, such as `emails` or `pages`."""
    return Texts(language, _all(language)[part])


def language_of(tag: str) -> str:
    """Return the available language for a tag such as `pt-br`; English if there is none."""
    base = tag.lower().partition("-")[0]
    return base if base in LANGUAGES else "en"


def language_for(state: State, user: User) -> str:
    """Return the language for messages to a user."""
    return language_of(state.settings[user.id].default_language)
