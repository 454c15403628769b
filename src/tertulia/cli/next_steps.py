"""What there is to do after an organization was created, as far as the settings tell."""

import shlex

from tertulia.service.config import Config


def next_steps(config: Config, owner: str) -> list[str]:
    """A line for each step, and one before them. `owner` is the owner's e-mail address."""
    place = (
        ""
        if config.data_dir == Config().data_dir
        else f" --data-dir {shlex.quote(config.data_dir)}"
    )
    steps = [f"start the server: `tertulia serve{place}`"]
    if not config.external_url:
        steps.append(
            "its address: set external_url to the one that people will use, and put a proxy with"
            " TLS before it, or set tls_cert"
        )
    mails = f"`tertulia mail{place} --test {shlex.quote(owner)}` says whether mail works"
    steps.append(mails if config.smtp_host else f"mail: set smtp_host and what it needs; {mails}")
    steps.append(f"people: `tertulia invite{place}`, or in the browser")
    steps.append("channels: in the browser, where the first steps are listed for you too")
    if not config.backup_to:
        steps.append(
            f"backups: set backup_to; `tertulia backups make{place}` makes the first one now"
        )
    steps.append(f"`tertulia check{place}` says whether all is well")
    return [
        "What to do next (settings are in tertulia.toml in the data directory, or TERTULIA_…):",
        *(f"  {number}. {step}" for number, step in enumerate(steps, 1)),
    ]
