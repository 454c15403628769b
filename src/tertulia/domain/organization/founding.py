"""Creating the organization with its owner and first channels."""

from typing import Final

from msgspec import Struct

from tertulia.domain import names
from tertulia.domain.channels import subscription_changes
from tertulia.domain.channels.channels import NewChannel
from tertulia.domain.organization import lifecycle
from tertulia.model.changes import AnyChange, ChannelCreated
from tertulia.model.channels import Channel
from tertulia.model.groups import Members
from tertulia.model.users import Credential, User
from tertulia.state.decision import CommandContext, Decision

_FIRST_CHANNEL: Final = 1


class NewOrganization(Struct, frozen=True, kw_only=True):
    """An organization to create. `credential` is its owner's, with the user ID
    `lifecycle.FIRST_USER`."""

    name: str
    uuid: str
    address: str
    full_name: str
    credential: Credential
    channels: tuple[NewChannel, ...] = ()


def create_organization(context: CommandContext, new: NewOrganization) -> Decision[User]:
    """Create the organization, its owner, and the channels, which the owner is subscribed to. New
    members are announced in the first channel. Raise Refused if an organization exists, and for
    invalid names and addresses."""
    decision = lifecycle.create(
        context,
        new.name,
        new.uuid,
        new.address,
        new.full_name,
        new.credential,
        signups_channel_id=_FIRST_CHANNEL if new.channels else -1,
    )
    owner = decision.result
    changes: list[AnyChange] = list(decision.changes)
    for channel_id, channel in enumerate(new.channels, _FIRST_CHANNEL):
        changes += _channel_changes(context, channel_id, channel, owner)
    return Decision(owner, changes)


def _channel_changes(
    context: CommandContext, channel_id: int, new: NewChannel, owner: User
) -> list[AnyChange]:
    """Return the changes that create a channel with the owner as subscriber. `channels.new_channel`
    can't, because it checks the permissions of an account that doesn't exist yet."""
    channel = Channel(
        id=channel_id,
        name=names.channel_name(new.name),
        description=new.description,
        rendered_description=new.rendered_description,
        created_at=int(context.now),
        creator_id=owner.id,
        is_default=new.is_default,
        can_administer_channel_group=Members((owner.id,), ()),
    )
    return [
        ChannelCreated(channel=channel),
        subscription_changes.subscription_change(context.state, channel, [owner], {}),
    ]
