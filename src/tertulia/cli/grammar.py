"""`key=value`: options that can be typed after a command, such as `role=guest` for `--role
guest`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

FOR_ALL: Final = frozenset({"data_dir", "database_url", "config", "as_json", "help"})
"""Options that all commands have. They can't be typed as `key=value`."""
_PAIR: Final = re.compile(r"([a-z][a-z0-9_-]*)=(.*)", re.DOTALL)
_YES: Final = frozenset({"true", "yes", "1"})
_NO: Final = frozenset({"false", "no", "0"})


def as_options(command: Any, typed: Sequence[str]) -> list[str]:
    """Return a command's arguments with each `key=value` that names one of its options converted to
    that option. Text after `--`, and values of options, don't change."""
    by_key, by_flag = {}, {}
    for option in command.params:
        if option.param_type_name != "option":
            continue
        by_flag.update(dict.fromkeys((*option.opts, *option.secondary_opts), option))
        if option.name not in FOR_ALL:
            by_key[max(option.opts, key=len).removeprefix("--")] = option
    return list(_rewritten(typed, by_key, by_flag))


def _rewritten(
    typed: Sequence[str], by_key: Mapping[str, Any], by_flag: Mapping[str, Any]
) -> Iterator[str]:
    texts = iter(typed)
    for text in texts:
        if text == "--":
            yield text
            break
        pair = _PAIR.fullmatch(text)
        option = by_key.get(pair[1].replace("_", "-")) if pair else None
        if pair is not None and option is not None:
            yield from _typed_option(option, pair[2])
            continue
        yield text
        if (flag := by_flag.get(text)) is not None and not flag.is_flag:
            yield from (value for value in [next(texts, None)] if value is not None)
    yield from texts


def _typed_option(option: Any, value: str) -> list[str]:
    name = max(option.opts, key=len)
    if not option.is_flag:
        return [f"{name}={value}"]
    if value.casefold() in _YES:
        return [name]
    if value.casefold() in _NO:
        return [max(option.secondary_opts, key=len)] if option.secondary_opts else []
    return [f"{name}={value}"]  # It's refused, with the option's name.
