"""`tertulia first-steps`: the steps left to set up a new organization."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from tertulia.app import founding
from tertulia.cli.commands import Printed, runnable
from tertulia.model.numbers import counted
from tertulia.service.config import Config
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.store import nodes

EXAMPLE = "Example: `tertulia first-steps --data-dir data`"


class SetupStep(Struct, frozen=True, kw_only=True):
    """Something to set up."""

    name: str
    done: bool
    about: str
    """A description of the result, or instructions."""


class Facts(Struct, frozen=True, kw_only=True):
    """The data that the steps depend on in addition to settings."""

    owner: str
    """The email address for a test email."""
    people: int
    invited: int
    channels: int
    serving: bool


def facts_of(state: State, owner: str, *, serving: bool) -> Facts:
    """Return the facts about an organization."""
    return Facts(
        owner=owner,
        people=sum(user.is_active and not user.is_bot for user in state.users),
        invited=len(state.invitations),
        channels=sum(not channel.is_archived for channel in state.channels),
        serving=serving,
    )


def settings_missing(config: Config) -> list[str]:
    """Return the steps whose setting isn't set yet."""
    made = {"address": config.external_url, "mail": config.smtp_host, "backups": config.backup_to}
    return [name for name, setting in made.items() if not setting]


def next_steps(
    config: Config, facts: Facts, file: Path | None = None, start: str = ""
) -> list[SetupStep]:
    """Return all steps, in the best order. `file` is the settings file if commands have to name it,
    and `start` is the command that starts the server if it isn't `serve`."""
    at = _place(config, file)
    missing = settings_missing(config)
    people = counted(facts.people, "person", "people")
    abouts = {
        "server": (
            facts.serving,
            "running" if facts.serving else f"start it: `{start or f'tertulia serve{at}'}`",
        ),
        "address": (
            "address" not in missing,
            config.external_url
            or "set external_url to the address that people will use, and put a reverse proxy"
            " with TLS in front of the server, or set tls_cert",
        ),
        "mail": (
            "mail" not in missing,
            (
                f"sent by {config.smtp_host}"
                if config.smtp_host
                else "set smtp_host and related settings"
            )
            + f"; test it with `tertulia mail test {shlex.quote(facts.owner)}{at}`",
        ),
        "people": (
            facts.people > 1 or facts.invited > 0,
            f"{people}, {counted(facts.invited, 'pending invitation')}"
            if facts.people > 1 or facts.invited
            else f"create a link with `tertulia invitations create{at}`, or invite people in the"
            " browser",
        ),
        "channels": (
            facts.channels > len(founding.FIRST_CHANNELS),
            counted(facts.channels, "channel")
            if facts.channels > len(founding.FIRST_CHANNELS)
            else f"create some with `tertulia channels create NAME{at}`, or in the browser",
        ),
        "backups": (
            "backups" not in missing,
            f"daily, to {config.backup_to}; list them with `tertulia backups{at}`"
            if config.backup_to
            else f"set backup_to, and make the first one with `tertulia backups make{at}`",
        ),
    }
    return [SetupStep(name=name, done=done, about=about) for name, (done, about) in abouts.items()]


def lines_of(config: Config, steps: Sequence[SetupStep], file: Path | None = None) -> list[str]:
    """Return the steps as a checklist."""
    at = _place(config, file)
    done = sum(step.done for step in steps)
    return [
        f"First steps: {done} of {len(steps)} done. (Settings go in"
        f" {file or 'tertulia.toml in the data directory'}, or in TERTULIA_… environment"
        " variables.)",
        *(f"  [{'x' if step.done else ' '}] {step.name:<8}  {step.about}" for step in steps),
        f"Run `tertulia first-steps{at}` to see this list again, and `tertulia check{at}` to check"
        " the installation.",
    ]


def _place(config: Config, file: Path | None) -> str:
    is_usual = config.data_dir == Config().data_dir
    place = "" if is_usual else f" --data-dir {shlex.quote(config.data_dir)}"
    return f"{place} --config {shlex.quote(str(file))}" if file else place


async def _look(caller: Caller, settings_file: Path | None) -> Printed:
    """Show what's left to set up in a new organization, from its address to backups."""
    config = caller.node.config
    listed = await caller.node.store.read(nodes.list_nodes)
    serving = any(node.is_living for node in listed)
    facts = facts_of(caller.state, caller.user.address, serving=serving)
    steps = next_steps(config, facts, settings_file)
    return Printed({"steps": steps}, lines_of(config, steps, settings_file))


first_steps = runnable(_look)
