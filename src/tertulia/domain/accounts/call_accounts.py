"""Connecting people's accounts at video call providers."""

from tertulia.model.call_accounts import CallAccount
from tertulia.model.changes import CallAccountConnected, CallAccountDisconnected
from tertulia.model.errors import Refused
from tertulia.state.decision import CommandContext, Decision


def connect(context: CommandContext, sealed: str) -> Decision[None]:
    """Store the actor's encrypted tokens, which connect or reconnect an account. Raise Refused for
    bots."""
    actor = context.actor
    if actor.is_bot:
        raise Refused("Bots can't create calls.")
    account = CallAccount(user_id=actor.id, sealed=sealed)
    renewed = actor.id in context.state.call_accounts
    return Decision(
        None, [CallAccountConnected(user_id=actor.id, account=account, renewed=renewed)]
    )


def disconnect(context: CommandContext) -> Decision[None]:
    """Delete the actor's tokens, if an account is connected."""
    if context.actor.id not in context.state.call_accounts:
        return Decision(None)
    return Decision(None, [CallAccountDisconnected(user_id=context.actor.id)])
