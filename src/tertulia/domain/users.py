"""Accounts: people and bots."""

from msgspec import Struct

from tertulia.domain import names, subscribing
from tertulia.model.changes import AnyChange, UserCreated
from tertulia.model.errors import Refused
from tertulia.model.users import Credential, PersonalSettings, Role, User
from tertulia.state.moment import Decision, Moment
from tertulia.state.organization import State


class NewUser(Struct, frozen=True, kw_only=True):
    """A person to be. `credential` is for nobody yet (`user_id` 0)."""

    address: str
    full_name: str
    role: Role = Role.MEMBER
    credential: Credential


def create(moment: Moment, new: NewUser) -> Decision[User]:
    """Create a person's account, subscribed to the default channels. Who may is for the caller
    to decide (an endpoint asks `may_create_users`; the command line does not ask).

    Refused for names and addresses that cannot be one, and for an address in use.
    """
    state = moment.state
    user = User(
        id=state.users.next_id(),
        address=free_address(state, new.address),
        full_name=names.full_name(new.full_name),
        role=new.role,
        joined_at=int(moment.now),
    )
    return Decision(user, [*created(user, new.credential), *subscribing.to_defaults(state, user)])


def created(user: User, credential: Credential) -> list[AnyChange]:
    """The change that makes the account exist."""
    own = Credential(
        user_id=user.id,
        password_hash=credential.password_hash,
        key_digest=credential.key_digest,
        key_sealed=credential.key_sealed,
    )
    settings = PersonalSettings(user_id=user.id)
    return [UserCreated(user=user, credential=own, settings=settings)]


def free_address(state: State, text: str) -> str:
    """The address in its final form. Refused when an account has it."""
    address = names.address(text)
    if state.user_with_address(address) is not None:
        raise Refused(f"Email '{address}' already in use")
    return address
