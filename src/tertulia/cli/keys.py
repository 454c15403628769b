"""`tertulia keys`: the API keys of people and bots."""

from tertulia.cli.accounts import Account, Who, account_called, account_of
from tertulia.cli.commands import Printed, command, group
from tertulia.cli.tables import facts
from tertulia.domain.accounts import users
from tertulia.model.errors import Refused
from tertulia.model.users import User
from tertulia.service.caller import Caller

app = group("keys", "Manage API keys of people and bots: show and replace them.")


@command(app, "show", "keys show weather-bot@example.com --data-dir data")
async def show(caller: Caller, who: Who) -> Printed:
    """Show the API key of a person or bot. Anyone who has it can do everything the account can."""
    return _printed(caller, _usable(caller, who))


@command(app, "replace", "keys replace weather-bot@example.com --data-dir data")
async def replace(caller: Caller, who: Who) -> Printed:
    """Replace the API key of a person or bot, and show the new one. The old key stops working
    immediately.

    People get an email about it, and their agents' keys are revoked. Browsers stay signed in;
    `tertulia sign-out` ends all access.
    """
    found = _usable(caller, who)
    new, site = caller.node.vault.new_key(), caller.node.config.mail_site
    await caller.submit(users.replace_key, found.id, new, site)
    return _printed(caller, found)


def _usable(caller: Caller, who: str) -> User:
    found = account_called(caller.state, who)
    if found.is_system_bot:
        raise Refused("The server's own bots don't have an API key that programs can use.")
    if not found.is_active:
        raise Refused(
            "The account is deactivated, so its API key doesn't work. Reactivate the account first."
        )
    return found


def _printed(caller: Caller, found: User) -> Printed:
    account: Account = account_of(caller.state, caller.node.vault, found)
    pairs = [(name, str(getattr(account, name))) for name in account.__struct_fields__]
    return Printed(account, facts(pairs))
