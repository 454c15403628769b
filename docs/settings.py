"""Makes `docs/settings.md` from the settings' declarations: `python -m docs.settings`."""

import re
from pathlib import Path
from typing import Final

import msgspec

from tertulia.cli.config import DescribedSetting, described_settings

PAGE: Final = Path(__file__).with_name("settings.md")
_BEGINNING: Final = """\
# All settings

[Configure](configure.md) describes where settings come from: the file `tertulia.toml`, environment
variables such as `TERTULIA_BACKUP_HOUR=4`, and flags. `tertulia config` prints this list, and
`tertulia config --show` the current values. This page is made from the code, by
`python -m docs.settings`.

Administrators change the organization's settings, such as permissions, in the browser or with
`tertulia settings set`.
"""
_NAME: Final = re.compile(r"\b[a-z0-9]+_[a-z0-9_]+\b")
_ALTERNATIVES: Final = re.compile(r"\(?(\w+(?:\|\w+)+)\)?")


def page() -> str:
    """Return the page's text."""
    return "\n".join([_BEGINNING, *(_section(setting) for setting in described_settings())])


def _section(setting: DescribedSetting) -> str:
    default = msgspec.json.encode(setting.default).decode()
    shown = "empty" if default in {'""', "[]"} else f"`{default}`"
    about = re.sub(
        r"docs/([\w-]+)\.md", r"[\1](\1.md)", setting.about.replace("[[sign_in]]", "`[[sign_in]]`")
    )
    plain_or_code = about.split("`")
    plain_or_code[::2] = [_NAME.sub(r"`\g<0>`", plain) for plain in plain_or_code[::2]]
    about = "`".join(plain_or_code)
    return f"## `{setting.name}`\n\n{about}\n\n{_values(setting)}. Default: {shown}.\n"


def _values(setting: DescribedSetting) -> str:
    if setting.type == "bool":
        return "`true` or `false`"
    if setting.type == "int":
        return f"A number from {setting.limits}" if setting.limits else "A number"
    if found := _ALTERNATIVES.fullmatch(setting.limits):
        return "One of " + ", ".join(f"`{value}`" for value in found[1].split("|"))
    return "A list of tables" if setting.type == "tuple" else "Text"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
