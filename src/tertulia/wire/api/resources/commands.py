"""Slash commands, and hints for beginners."""

from typing import Any, Final

from tertulia.domain.accounts import onboarding, personal_settings
from tertulia.domain.accounts.personal_settings import Revision
from tertulia.model.errors import Refused
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Params
from tertulia.wire.http.routing import Answer


class Command(Params, kw_only=True, frozen=True):
    """What was typed, with its slash."""

    command: str


class Told(Answer, kw_only=True):
    """What the command did, in words; empty for a ping."""

    msg: str


_SETTINGS: Final[dict[str, tuple[str, Any, str]]] = {
    "dark": ("color_scheme", 2, "Dark theme is on. To switch back, use /light."),
    "night": ("color_scheme", 2, "Dark theme is on. To switch back, use /light."),
    "light": ("color_scheme", 3, "Light theme is on. To switch back, use /dark."),
    "day": ("color_scheme", 3, "Light theme is on. To switch back, use /dark."),
    "fluid-width": ("fluid_layout_width", True, "Messages now use the full width of the window."),
    "fixed-width": ("fluid_layout_width", False, "Messages now use a limited width."),
}
"""Commands that are a setting: its name, its value, and what is said of it."""


async def run_command(call: Call, params: Command) -> Told:
    """Carry out a slash command of the caller's."""
    slash, name = params.command[:1], params.command[1:].strip()
    if slash != "/":
        raise Refused("Commands must begin with a slash.")
    if name == "ping":
        return Told(msg="")
    if name not in _SETTINGS:
        raise Refused("This command doesn't exist.")
    setting, value, said = _SETTINGS[name]
    await call.submit(personal_settings.change, Revision(settings={setting: value}))
    return Told(msg=said)


class TakeStep(Params, kw_only=True, frozen=True):
    """A hint for beginners, by its name."""

    onboarding_step: str


async def take_onboarding_step(call: Call, params: TakeStep) -> Answer:
    """The caller has seen the hint, and does not need it again."""
    await call.submit(onboarding.take, params.onboarding_step)
    return Answer()
