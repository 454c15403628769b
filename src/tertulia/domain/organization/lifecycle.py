"""Creating, deactivating, and reactivating the organization, and its languages."""

from collections.abc import Mapping
from typing import Final

from tertulia.domain import names
from tertulia.domain.permissions import require_owner
from tertulia.model.changes import RealmCreated, RealmDeactivated, RealmReactivated, UserCreated
from tertulia.model.errors import Refused
from tertulia.model.groups import SYSTEM_GROUPS
from tertulia.model.organization import Realm
from tertulia.model.users import Bot, BotKind, Credential, PersonalSettings, Role, User
from tertulia.state.decision import CommandContext, Decision

NOTIFICATION_BOT = 1
WELCOME_BOT = 2
EMAIL_GATEWAY = 3
FIRST_USER = 4
"""The user ID of the organization's first owner."""

UPLOAD_QUOTA_MIB = 10_240
"""The storage quota per person in a new organization."""
_BOTS = (
    (NOTIFICATION_BOT, "Notification Bot", "notification-bot"),
    (WELCOME_BOT, "Welcome Bot", "welcome-bot"),
    (EMAIL_GATEWAY, "Email Gateway", "emailgateway"),
)


def create(
    context: CommandContext,
    name: str,
    uuid: str,
    address: str,
    full_name: str,
    credential: Credential,
    *,
    signups_channel_id: int = -1,
) -> Decision[User]:
    """Create the organization and its owner, whose credential has the user ID `FIRST_USER`. The
    caller creates the channel for signup announcements."""
    if not context.state.is_empty:
        raise Refused("This server already has an organization.")
    realm_name = names.realm_name(name)
    now = int(context.now)
    owner = User(
        id=FIRST_USER,
        address=names.address(address),
        full_name=founder_name(full_name),
        role=Role.OWNER,
        joined_at=now,
    )
    realm = Realm(
        uuid=uuid,
        name=realm_name,
        created_at=now,
        signup_announcements_channel_id=signups_channel_id,
        inline_url_embed_preview=True,
        upload_quota_per_user_mib=UPLOAD_QUOTA_MIB,
    )
    return Decision(
        owner,
        (
            RealmCreated(realm=realm, groups=SYSTEM_GROUPS, bots=system_bots(now)),
            UserCreated(
                user=owner, credential=credential, settings=PersonalSettings(user_id=owner.id)
            ),
        ),
    )


def system_bots(now: int) -> tuple[User, ...]:
    """Return the accounts of the server's own bots."""
    return tuple(
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


def founder_name(text: str) -> str:
    """Return the normalized name of the founder. Raise Refused if it's invalid."""
    name = names.full_name(text)
    names.require_unlike(name, (bot for _, bot, _ in _BOTS))
    return name


def deactivate(context: CommandContext) -> Decision[None]:
    """Deactivate the organization, so that nobody can use it. Nothing is deleted. For owners."""
    require_owner(context.state, context.actor)
    return Decision(None, (RealmDeactivated(),))


def reactivate(context: CommandContext) -> Decision[None]:
    """Reactivate the organization, as the server's operator. Raise Refused if it isn't
    deactivated."""
    if not context.state.realm.deactivated:
        raise Refused("This organization isn't deactivated.")
    return Decision(None, (RealmReactivated(),))


LANGUAGES: Final[Mapping[str, str]] = {
    "ar": "العربيّة",
    "be": "беларуская",
    "bg": "български",
    "bn": "বাংলা",
    "ca": "català",
    "cs": "česky",
    "cy": "Cymraeg",
    "da": "dansk",
    "de": "Deutsch",
    "el": "Ελληνικά",
    "en": "English",
    "en-gb": "British English",
    "eo": "Esperanto",
    "es": "español",
    "fa": "فارسی",
    "fi": "suomi",
    "fr": "français",
    "gl": "galego",
    "gu": "ગુજરાતી",
    "hi": "हिन्दी",
    "hr": "hrvatski",
    "hu": "magyar",
    "id": "Bahasa Indonesia",
    "it": "italiano",
    "ja": "日本語",
    "ka": "ქართული",
    "ko": "한국어",
    "lt": "lietuviškai",
    "lv": "latviešu",
    "ml": "മലയാളം",
    "mn": "Монгол",
    "nl": "Nederlands",
    "nn": "norsk (nynorsk)",
    "no": "norsk",
    "pl": "polski",
    "pt": "português",
    "pt-br": "português brasileiro",
    "pt-pt": "português europeu",
    "ro": "română",
    "ru": "русский",
    "si": "සිංහල",
    "sk": "slovenčina",
    "sl": "slovenščina",
    "sr": "српски",
    "sv": "svenska",
    "ta": "தமிழ்",
    "te": "తెలుగు",
    "tl": "Tagalog",
    "tr": "Türkçe",
    "uk": "українська",
    "ur": "اردو",
    "uz": "o'zbekcha",
    "vi": "Tiếng Việt",
    "zh-hans": "简体中文",
    "zh-hant": "繁體中文",
    "zh-tw": "臺灣繁體中文",
}
"""Languages' own names, by code."""
