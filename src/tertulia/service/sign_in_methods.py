"""The base of sign-in methods other than passwords. `provider_methods` and `directory_methods` have
the kinds, which are loaded only if one is configured."""

from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from msgspec import Meta, Struct

from tertulia.model.identities import RecognitionRules
from tertulia.model.users import Role

NEEDED = Annotated[str, Meta(min_length=1)]
RoleName = Literal["owner", "administrator", "moderator", "member", "guest"]
_MAX_SECRET_BYTES: Final = 64 * 1024
_MAX_ICON_BYTES: Final = 64 * 1024
_PNG: Final = b"\x89PNG\r\n\x1a\n"


class SignInMethod(Struct, kw_only=True, frozen=True, tag_field="kind", forbid_unknown_fields=True):
    """A sign-in method. Subclasses are the kinds."""

    NEEDS_URL: ClassVar[bool] = True
    """Whether people are sent back from elsewhere, so that `external_url` must be configured."""
    HAS_BUTTON: ClassVar[bool] = True
    """Whether the sign-in page has a button for it, which leads to `/sign-in/NAME`."""
    IS_REDIRECTING: ClassVar[bool] = False
    """Whether people are sent to a provider that sends them back with a code."""
    TAKES_PASSWORDS: ClassVar[bool] = False
    """Whether people enter their name and password for it in the ordinary form."""
    HAS_LOGOUT: ClassVar[bool] = False
    """Whether people can also sign out at the provider."""
    HAS_GROUPS: ClassVar[bool] = True
    """Whether the provider sends people's groups."""
    TITLE: ClassVar[str] = ""
    """The title if none is configured."""

    name: Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9-]{0,29}$")]
    """The name used in URLs. Accounts are linked under it."""
    title: str = ""
    """The button's title; empty to use the kind's title or the name."""
    icon_file: str = ""
    """A PNG image for the button, which apps also show; empty for none."""
    accounts: Literal["create", "match"] = "create"
    """Whether to create accounts for people without one."""
    single_logout: bool = False
    """Whether signing out here also signs people out at the provider, without asking them."""
    roles: dict[RoleName, NEEDED] = {}
    """The value, at the provider, that gives each role."""
    groups: dict[str, NEEDED] = {}
    """The value, at the provider, that makes people members of each group."""

    @property
    def kind(self) -> str:
        """The kind, as in the settings."""
        return str(self.__struct_config__.tag)

    @property
    def label(self) -> str:
        """The name that people see."""
        return self.title or self.TITLE or self.name

    @property
    def path(self) -> str:
        """The path on this server where signing in starts."""
        return f"/sign-in/{self.name}"

    @property
    def icon_path(self) -> str | None:
        """The path of the icon on this server; None without one."""
        return f"{self.path}/icon.png" if self.icon_file else None

    def icon(self) -> bytes:
        """Read the icon. Raise ValueError if it can't be used."""
        try:
            with Path(self.icon_file).open("rb") as file:
                content = file.read(_MAX_ICON_BYTES + 1)
        except OSError as error:
            raise ValueError(f"icon_file: can't read {self.icon_file}: {error.strerror}") from None
        if not content.startswith(_PNG) or len(content) > _MAX_ICON_BYTES:
            raise ValueError(f"icon_file: {self.icon_file} isn't a PNG image of up to 64 KiB")
        return content

    @property
    def is_public(self) -> bool:
        """Whether anyone can have an account at the provider."""
        return False

    @property
    def provider(self) -> str:
        """The provider that issues people's IDs, if another one could be configured under the same
        name; otherwise empty."""
        return ""

    def subject(self, provider_id: str) -> str:
        """Return the subject that an account is linked to, for the provider's ID of a person."""
        return f"{self.provider} {provider_id}" if self.provider else provider_id

    def provider_id(self, subject: str) -> str:
        """Return the provider's ID of a person, the reverse of `subject`."""
        return subject.removeprefix(f"{self.provider} ")

    @property
    def rules(self) -> RecognitionRules:
        """The rules for creating accounts, and for roles and groups."""
        return RecognitionRules(
            title=self.label,
            creates=self.accounts == "create",
            is_public=self.is_public,
            roles={Role[name.upper()]: value for name, value in self.roles.items()},
            groups=self.groups,
        )

    def check(self) -> None:
        """Raise ValueError for a mistake that the fields' types don't reveal. The message is the
        rest of a sentence that begins with the setting's key."""


def file_text(path: str) -> str:
    """Return the content of a file with a secret, without the line end; empty for an empty path.
    Raise OSError, and ValueError if it isn't text."""
    if not path:
        return ""
    with Path(path).open("rb") as file:
        return file.read(_MAX_SECRET_BYTES).decode().strip()


def require_file(key: str, path: str) -> None:
    try:
        text = file_text(path)
    except OSError as error:
        raise ValueError(f"{key}: can't read {path}: {error.strerror}") from None
    except ValueError:
        raise ValueError(f"{key}: {path} isn't a text file") from None
    if path and not text:
        raise ValueError(f"{key}: {path} is empty")
