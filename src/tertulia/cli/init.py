"""`tertulia init`: create the organization, with options or by asking on a terminal."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from tertulia.app import founding, settings_file
from tertulia.app.acting import opened_caller
from tertulia.app.config import ConfigError, load
from tertulia.app.founding import opened_log, opened_vault
from tertulia.cli import mail
from tertulia.cli import systemd as units
from tertulia.cli.accounts import Account, account_of
from tertulia.cli.commands import report, settings_from, show
from tertulia.cli.errors import CommandFailed, UsageError
from tertulia.cli.first_steps import facts_of, lines_of, next_steps
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, Password, ShowKey
from tertulia.cli.terminal import agree, ask, can_be_asked, password_from, say, several
from tertulia.domain import names
from tertulia.domain.accounts import invitations
from tertulia.domain.accounts.invitations import InvitationTerms
from tertulia.domain.organization import lifecycle
from tertulia.model.errors import Refused
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.store import file_modes
from tertulia.wire.api.channels.endpoints import CreateChannel, create_channel

EXAMPLE = (
    "Example: `tertulia init --data-dir data`, which asks for everything on a terminal; or"
    " `tertulia init --data-dir data --org 'Example' --email ann@example.com --full-name 'Ann'`"
)


def init(
    org: Annotated[str | None, typer.Option(help="Name of the organization.")] = None,
    email: Annotated[str | None, typer.Option(help="Email address of the owner.")] = None,
    full_name: Annotated[str | None, typer.Option(help="Full name of the owner.")] = None,
    password: Password = None,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="Don't ask anything. Settings without an option keep their values."
        ),
    ] = False,
    systemd: Annotated[
        bool,
        typer.Option(
            "--systemd",
            help="Also install a systemd service, with what the settings need: access to backups,"
            " to the certificate, and to port 443. Requires root. For an existing organization,"
            " only install or update the service.",
        ),
    ] = False,
    show_key: ShowKey = False,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Create the organization, its owner, and a first channel that everyone is subscribed to.

    On a terminal, `init` asks for names, the address, backups, email (which it tests), channels,
    and people to invite. It writes the resulting settings to tertulia.toml. Otherwise, and with
    --yes or --json, it doesn't ask anything, and requires --org, --email, and --full-name.

    Prints the owner's user ID and email address, and what to do next. The secret that encrypts API
    keys is created in the data directory: keep it with your backups.
    """
    flags = {"data_dir": data_dir, "database_url": database_url}
    asking = can_be_asked() and not yes and not as_json
    if asking and config is not None:
        file_modes.touch(config)  # The answers are written to it.
    settings = settings_from(flags, config)
    if systemd:
        units.require_possible(settings)
        if founding.is_founded(settings):
            say(*units.install(settings, settings_file.settings_path(settings, config)))
            return
    if asking and founding.is_founded(settings):
        raise Refused("An organization already exists here. Nothing was changed.")
    org = _given_or_asked(org, "--org", "Organization name", names.realm_name, asking=asking)
    full_name = _given_or_asked(
        full_name, "--full-name", "Your name", lifecycle.founder_name, asking=asking
    )
    email = _given_or_asked(email, "--email", "Your email address", names.address, asking=asking)
    founder = founding.Founder(
        organization=org,
        address=email,
        full_name=full_name,
        password=password_from(password, settings, email, full_name, org),
    )
    if not asking:
        owner = asyncio.run(_init(settings, founder))
        show(owner.printed(with_key=show_key), as_json=as_json)
        if not as_json:
            _show_first_steps(settings, owner.email, config, as_service=systemd)
        if systemd:
            say(*units.install(settings, settings_file.settings_path(settings, config)))
        return
    new = _NewSettings(flags, config)
    _ask_for_address(new)
    _ask_for_backups(new)
    new.write()
    owner = asyncio.run(_init(new.config, founder))
    say("", f"Created the organization '{org}'.")
    try:
        can_send = _ask_for_mail(new, owner.email)
        _ask_for_channels(new.config)
        _ask_for_people(new.config, can_send=can_send)
    finally:  # This also runs after Ctrl+C, because the organization exists.
        say("")
        show(owner.printed(with_key=show_key), as_json=False)
        say("")
        _show_first_steps(new.config, owner.email, config, as_service=systemd)
        if systemd:
            say("", *units.install(new.config, settings_file.settings_path(new.config, config)))


def _given_or_asked(
    given: str | None, option: str, question: str, check: Any, *, asking: bool
) -> str:
    """Return the option's value, or the answer to the question."""
    if given is not None:
        return str(check(given))
    if not asking:
        raise UsageError(
            f"Missing option '{option}'. (On a terminal, `tertulia init` asks for it.)"
        )
    return ask(question, check, default=None)


async def _init(settings: Config, founder: founding.Founder) -> Account:
    async with opened_log(settings, report) as log:
        founding.require_empty(log.state)
        vault = opened_vault(settings, create=True)
        try:
            owner = await founding.found(log, vault, founder)
            return account_of(log.state, vault, owner)
        finally:
            vault.close()


def _show_first_steps(settings: Config, owner: str, file: Path | None, *, as_service: bool) -> None:
    """Print the first steps to standard error, because programs read only the account."""
    start = "systemctl enable --now tertulia" if as_service else ""

    async def look() -> list[str]:
        async with opened_log(settings, report) as log:
            facts = facts_of(log.state, owner, serving=False)
        return lines_of(settings, next_steps(settings, facts, file, start), file)

    say(*asyncio.run(look()))


class _NewSettings:
    """New settings that override the existing ones."""

    def __init__(self, flags: Mapping[str, Any], file: Path | None) -> None:
        self._flags: dict[str, Any] = dict(flags)
        self._file = file
        self._new: dict[str, str | int] = {}
        self.config = load(self._flags, file=file)

    def with_(self, **values: str | int) -> Config:
        """Return the settings with these values. Raise ConfigError if one is invalid."""
        try:
            return load({**self._flags, **values}, file=self._file)
        except ConfigError as error:
            text = str(error)
            for name in values:  # They were typed as answers, not as flags.
                text = text.replace(f" from --{name.replace('_', '-')}", "")
            raise ConfigError(text) from None

    def take(self, **values: str | int) -> None:
        """Use these values from now on. Raise ConfigError if one is invalid."""
        self.config = self.with_(**values)
        self._flags.update(values)
        self._new.update(values)

    def taken(self, name: str) -> Any:
        """Return a check for `ask` that uses the answer, unless it's empty."""

        def check(text: str) -> str:
            if text:
                self.take(**{name: text})
            return text

        return check

    def write(self) -> None:
        """Save the values that are new since the last call."""
        if self._new:
            file = settings_file.settings_path(self.config, self._file)
            settings_file.put(file, self._new)
            say(f"  Saved to {file}.")
            self._new = {}


def _ask_for_address(new: _NewSettings) -> None:
    if new.config.external_url:
        return
    say(
        "",
        "The address that people will use, such as https://chat.example.com. Links in emails"
        " lead there,",
        "and push notifications require HTTPS. Leave it empty if you don't know it yet.",
    )
    ask("Address", new.taken("external_url"))


def _ask_for_backups(new: _NewSettings) -> None:
    if new.config.backup_to:
        return
    directory = new.config.data_path.resolve()
    say(
        "",
        "Tertulia makes a backup every day, and keeps one per day for 7 days and one per week"
        " for 4 weeks.",
        "Enter a directory, preferably on another disk, or s3://bucket/prefix. `none` turns"
        " backups off.",
    )
    ask("Backups", _unless_none(new.taken("backup_to")), default=f"{directory}-backups")


def _unless_none(check: Any) -> Any:
    return lambda text: check("" if text == "none" else text)


_ENCRYPTION: Final = {"465": "tls", "25": "none"}
"""The usual encryption of a port."""


def _ask_for_mail(new: _NewSettings, owner: str) -> bool:
    """Ask for a mail server unless one is configured, and return whether the test email was
    sent."""
    if new.config.smtp_host:
        return _try_mail(new.config, owner)
    if not new.config.external_url:
        say("", "Email requires an address for links. Set it up when you know the address.")
        return False
    say(
        "",
        "The mail server for invitations, password resets, and emails about missed messages.",
        "Leave it empty if you don't have one. You can then share invitation links yourself.",
    )
    settings: dict[str, str | int] = {}
    while host := ask("Mail server", typed=str(settings.get("smtp_host", ""))):
        settings = _mail_server(host, settings)
        try:
            tried = new.with_(**settings)
        except ConfigError as error:
            say(f"  {error}")
            continue
        can_send = _try_mail(tried, owner)
        if can_send or not agree("Try different settings?", default=True):
            new.take(**settings)
            try:
                new.write()
            except (ConfigError, OSError) as error:  # The organization exists.
                say(f"  {error}")
            return can_send
    return False


def _mail_server(host: str, before: Mapping[str, str | int]) -> dict[str, str | int]:
    """Ask for the settings of a mail server, with the previous answers to start from."""
    typed = {name: str(value) for name, value in before.items()}
    port = ask("Port", _port, default=typed.get("smtp_port", "587"))
    kind = ask(
        "Encryption (starttls, tls, or none)",
        _security,
        default=typed.get("smtp_security", _ENCRYPTION.get(port, "starttls")),
    )
    user = ask("User name (leave empty if not required)", typed=typed.get("smtp_user", ""))
    password = ask("Password", hidden=True, default=None) if user else ""
    sender = ask(
        "Sender, such as Chat <chat@example.com> (leave empty for noreply@ your host)",
        typed=typed.get("mail_from", ""),
    )
    values: dict[str, str | int] = {
        "smtp_host": host,
        "smtp_port": int(port),
        "smtp_security": kind,
    }
    values |= {"smtp_user": user, "smtp_password": password, "mail_from": sender}
    return {name: value for name, value in values.items() if value}


def _port(text: str) -> str:
    if not text.isdecimal() or len(text) > 5 or not 0 < int(text) < 2**16:
        raise UsageError("Enter a number from 1 to 65535.")
    return text


def _security(text: str) -> str:
    if text not in {"starttls", "tls", "none"}:
        raise UsageError("Enter starttls, tls, or none.")
    return text


def _try_mail(config: Config, owner: str) -> bool:
    """Send the owner a test email, and return whether it worked."""
    try:
        say(f"  {asyncio.run(mail.send_test(config, owner))}")
    except CommandFailed as error:
        say(f"  {error}")
        return False
    return True


def _ask_for_channels(config: Config) -> None:
    say(
        "",
        "Channels to create in addition to general, separated by commas. Everyone will be"
        " subscribed.",
        "You can add and change channels at any time.",
    )
    asyncio.run(_create_channels(config, several(ask("Channels"))))


async def _create_channels(config: Config, names: Sequence[str]) -> None:
    async with opened_caller(config, say) as caller:
        for name in names:
            new = CreateChannel(
                name=name,
                description="",
                is_default_stream=True,
                subscribers=[caller.user.id],
                announce=False,
                send_new_subscription_messages=False,
            )
            try:
                await create_channel(caller, new)
            except Refused as refusal:
                say(f"  {name}: {refusal}")


def _ask_for_people(config: Config, *, can_send: bool) -> None:
    """Ask whom to invite. `can_send` is whether the test email was sent."""
    say("", "People to invite: their email addresses, separated by commas.")
    people = several(ask("People"))
    invited = asyncio.run(_invite(config, people))
    for address, link in invited:
        say(f"  {address}" if can_send else f"  {address}  {link}")
    if people and not invited:
        say("  No one was invited.")
    elif invited and not config.smtp_host:
        say("  No emails were sent. Share each link with the person it's for.")
    elif invited:
        if not can_send:
            say(
                "  No emails were sent yet, because the test email failed. You can share each link"
                " with the person it's for."
            )
        say(
            "  The server emails these invitations when it runs. `tertulia invitations list` shows"
            " whether that worked."
        )


async def _invite(config: Config, people: Sequence[str]) -> list[tuple[str, str]]:
    """Invite people, by email if it's set up. Return their addresses and links."""
    minutes = config.invitation_link_validity_minutes
    terms = InvitationTerms(minutes=minutes, role=Role.MEMBER, default_channels=True)
    email_from = config.mail_site if config.smtp_host else None
    links = []
    async with opened_caller(config, say) as caller:
        for address in people:
            nonce = caller.node.vault.nonce()
            try:
                made = await caller.submit(
                    invitations.create_personal_link, address, terms, nonce, email_from
                )
            except Refused as refusal:
                say(f"  {address}: {refusal}")
                continue
            links.append((address, caller.node.links.invitation(config.mail_site, made)))
    return links
