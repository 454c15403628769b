"""`tertulia export`: export the organization to move it elsewhere."""

import time
from pathlib import Path
from typing import Annotated

import typer

from tertulia.app.founding import founded_database
from tertulia.cli.commands import Printed, configured
from tertulia.cli.errors import UsageError
from tertulia.cli.terminal import as_interrupts, progress_bars
from tertulia.exports.exporting import ExportFormat, export_organization
from tertulia.model.exports import ExportKind
from tertulia.model.numbers import counted
from tertulia.service.config import Config

EXAMPLES = {
    "export": "Example: `tertulia export --data-dir data export.tar.gz`\n\n"
    "Pages to read without a server, of public channels only: `tertulia export --data-dir data"
    " --format html --public-only archive.tar.gz`"
}


@configured
def export(
    config: Config,
    file: Annotated[Path, typer.Argument(help="File to write. It must not exist yet.")],
    public_only: Annotated[
        bool,
        typer.Option(
            "--public-only", help="Export only public channels, and nobody's private data."
        ),
    ] = False,
    with_consent: Annotated[
        bool,
        typer.Option(
            "--with-consent",
            help="Export public channels, and the private data of people who allow it in their"
            " settings.",
        ),
    ] = False,
    form: Annotated[
        ExportFormat,
        typer.Option(
            "--format",
            help="`zulip` can be imported by Tertulia and Zulip. `html` is pages to read without a"
            " server.",
        ),
    ] = ExportFormat.ZULIP,
) -> Printed:
    """Export the organization to a `.tar.gz` file. The server can keep running.

    Without options, it contains everything: private channels, direct messages, and people's email
    addresses and settings. It never contains passwords, API keys, or other secrets. To import it
    into a Zulip server of the same version, replace `migration_status.json` by the one from an
    export of that server.

    An export doesn't replace a backup: `tertulia backups save` keeps everything.
    """
    if public_only and with_consent:
        raise UsageError("Use only one of --public-only and --with-consent.")
    kind = ExportKind.FULL
    if public_only or with_consent:
        kind = ExportKind.PUBLIC if public_only else ExportKind.CONSENT
    with (
        as_interrupts(),
        founded_database(config) as connection,
        progress_bars() as progress,
    ):
        done = export_organization(
            connection,
            *config.opened_files(),
            file,
            kind,
            form,
            host=config.address_host,
            now=time.time(),
            progress=progress,
        )
    lines = [f"Wrote {file}: {counted(done.messages, 'message')}, {counted(done.files, 'file')}."]
    if done.missing:
        shown = ", ".join(done.missing[:5])
        lines.append(f"{counted(len(done.missing), 'uploaded file')} missing from storage: {shown}")
    if done.lost:
        lines.append("Not in the file, because Zulip's format has no place for it:")
        lines += [f"- {text}" for text in done.lost]
        lines.append("A backup (`tertulia backups save`) keeps everything.")
    written = {
        "file": str(file),
        "kind": kind.value,
        "format": form.value,
        "messages": done.messages,
        "files": done.files,
        "missing": done.missing,
        "lost": done.lost,
    }
    return Printed(written, lines)
