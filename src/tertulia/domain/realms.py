"""The organization itself."""

from tertulia.domain import names
from tertulia.model.changes import RealmCreated, UserCreated
from tertulia.model.errors import Refused
from tertulia.model.groups import SYSTEM_GROUPS
from tertulia.model.realm import Realm
from tertulia.model.users import Bot, BotKind, Credential, PersonalSettings, Role, User
from tertulia.state.moment import Decision, Moment

NOTIFICATION_BOT = 1
WELCOME_BOT = 2
EMAIL_GATEWAY = 3
FIRST_USER = 4
"""The organization's founder."""

_BOTS = (
    (NOTIFICATION_BOT, "Notification Bot", "notification-bot"),
    (WELCOME_BOT, "Welcome Bot", "welcome-bot"),
    (EMAIL_GATEWAY, "Email Gateway", "emailgateway"),
)


def found(
    moment: Moment, name: str, uuid: str, address: str, full_name: str, credential: Credential
) -> Decision[User]:
    """Create the organization and its owner, whose credential is for `FIRST_USER`."""
    if not moment.state.is_empty:
        raise Refused("There is an organization here already.")
    realm_name = name.strip()
    if not 0 < len(realm_name) <= names.MAX_REALM_NAME:
        raise Refused(f"An organization's name has 1 to {names.MAX_REALM_NAME} characters.")
    now = int(moment.now)
    owner = User(
        id=FIRST_USER,
        address=names.address(address),
        full_name=names.full_name(full_name),
        role=Role.OWNER,
        joined_at=now,
    )
    bots = tuple(
        User(
            id=bot_id,
            address=f"{local}@tertulia.invalid",
            full_name=full,
            joined_at=now,
            avatar_source="J",
            bot=Bot(kind=BotKind.GENERIC, is_system=True),
        )
        for bot_id, full, local in _BOTS
    )
    realm = Realm(uuid=uuid, name=realm_name, created_at=now)
    return Decision(
        owner,
        (
            RealmCreated(realm=realm, groups=SYSTEM_GROUPS, bots=bots),
            UserCreated(
                user=owner, credential=credential, settings=PersonalSettings(user_id=owner.id)
            ),
        ),
    )
