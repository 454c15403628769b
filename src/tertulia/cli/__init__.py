"""The command line: one module per command."""

from typing import Annotated

import typer

from tertulia import __version__
from tertulia.cli import (
    agents,
    announce,
    backup,
    backups,
    bots,
    channels,
    check,
    config,
    create_bot,
    create_user,
    defaults,
    domains,
    emoji,
    end_queues,
    fields,
    files,
    folders,
    groups,
    init,
    invitations,
    invite,
    keys,
    linkifiers,
    mail,
    move_files,
    next_steps,
    nodes,
    password,
    playgrounds,
    reactivate,
    restore,
    serve,
    sessions,
    settings,
    sign_out,
    top,
    usage,
    users,
)
from tertulia.cli.commands import command
from tertulia.cli.errors import Commands

app = typer.Typer(
    name="tertulia",
    cls=Commands,
    help="Tertulia, a team-chat server that Zulip's clients work with.",
    epilog="To look around: `tertulia serve --demo --data-dir demo`",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"Tertulia {__version__}")
        raise typer.Exit


@app.callback()
def _tertulia(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Tertulia, a team-chat server that Zulip's clients work with."""


app.command("serve", epilog=serve.EXAMPLE)(serve.serve)
app.command("init", epilog=init.EXAMPLE)(init.init)
command(app, "first-steps", "first-steps --data-dir data")(next_steps.first_steps)
app.command("create-user", epilog=create_user.EXAMPLE)(create_user.create_user)
app.command("create-bot", epilog=create_bot.EXAMPLE)(create_bot.create_bot)
app.command("password", epilog=password.EXAMPLE)(password.password)
app.command("sign-out", epilog=sign_out.EXAMPLE)(sign_out.sign_out)
app.command("reactivate", epilog=reactivate.EXAMPLE)(reactivate.reactivate)
app.command("invite", epilog=invite.EXAMPLE)(invite.invite)
for group in (
    *(users, bots, keys, sessions, agents, invitations, groups),
    *(channels, folders, settings, defaults, fields, domains),
    *(emoji, linkifiers, playgrounds, files, announce),
):
    app.add_typer(group.app)
app.command("mail", epilog=mail.EXAMPLE)(mail.mail)
app.command("backup", epilog=backup.EXAMPLE)(backup.backup)
app.add_typer(backups.app, name="backups", epilog=backups.EXAMPLE)
app.command("restore", epilog=restore.EXAMPLE)(restore.restore)
app.command("move-files", epilog=move_files.EXAMPLE)(move_files.move_files)
app.command("check", epilog=check.EXAMPLE)(check.check)
app.command("top", epilog=top.EXAMPLE)(top.top)
app.add_typer(nodes.app, name="nodes", epilog=nodes.EXAMPLE)
app.command("end-queues", epilog=end_queues.EXAMPLE)(end_queues.end_queues)
app.command("usage", epilog=usage.EXAMPLE)(usage.usage)
app.command("config", epilog=config.EXAMPLE)(config.config)


def main() -> None:
    """Run it."""
    app()
