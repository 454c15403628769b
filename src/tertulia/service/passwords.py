"""What the installation asks of passwords."""

from tertulia.domain.accounts.signup import PasswordRules
from tertulia.service.config import Config
from tertulia.service.node import Node


def password_rules(config: Config) -> PasswordRules:
    """What the installation asks of passwords."""
    return PasswordRules(
        min_length=config.password_min_length, min_guesses=config.password_min_guesses
    )


async def good_password(node: Node, text: str, *own: str) -> str:
    """The password that somebody made up. Refused where it is not good enough. `own` is what is
    known of its person."""
    known = (*own, node.state.realm.name)
    return await node.vault.in_thread(password_rules(node.config).require, text, known)
