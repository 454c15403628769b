"""The words of mails."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from tertulia.model.invitations import Confirmation, Invitation
from tertulia.model.mail import Mail, MailKind, Unsubscribing
from tertulia.model.users import Credential, User
from tertulia.state.organization import State

if TYPE_CHECKING:
    import jinja2


class Links(Protocol):
    """Makes the links that open something."""

    def invitation(self, site: str, invitation: Invitation) -> str: ...

    def sign_up(self, site: str, confirmation: Confirmation) -> str: ...

    def address(self, site: str, confirmation: Confirmation) -> str: ...

    def reset(self, site: str, credential: Credential, expires_at: int) -> str: ...

    def password_mark(self, credential: Credential) -> str: ...

    def unsubscribing(self, site: str, user_id: int, what: Unsubscribing) -> str: ...


class InlinePicture(Struct, frozen=True, kw_only=True):
    """A picture that comes with a mail, and is shown in it."""

    content_id: str
    """By which the HTML names it."""
    media_type: str
    """`image/…`"""
    content: bytes


class RenderedMail(Struct, frozen=True, kw_only=True):
    """A mail in words, ready to be sent."""

    to: str
    subject: str
    text: str
    html: str
    headers: tuple[tuple[str, str], ...] = ()
    """More of its header, by name."""
    pictures: tuple[InlinePicture, ...] = ()


class _Parts(Struct, frozen=True, kw_only=True):
    """What the template makes a mail of."""

    subject: str
    paragraphs: tuple[str, ...]
    button: str = ""
    link: str = ""
    ending: str = ""
    language: str = "en"
    unsubscribe: str = ""
    """Where such mails are turned off; empty where they cannot be."""


class MailTemplates:
    """Writes mails, with what the organization knows at that moment."""

    def __init__(self, state: Callable[[], State], links: Links) -> None:
        self._state = state
        self._links = links

    async def written(self, mail: Mail, now: float) -> RenderedMail | None:
        """The same as `render`, as whoever sends mails asks for it."""
        return self.render(mail, now)

    def render(self, mail: Mail, now: float) -> RenderedMail | None:
        """The mail in words; None where what it is about is over."""
        state = self._state()
        parts = _WRITERS[mail.kind](state, self._links, mail, now)
        return None if parts is None else _rendered(state.realm.name, mail.to, mail.site, parts)


def trial(state: State, to: str, site: str) -> RenderedMail:
    """A mail that says that mails arrive."""
    parts = _Parts(
        subject=f"Mails from {state.realm.name} arrive",
        paragraphs=("This mail was sent to see whether mails arrive. They do.",),
    )
    return _rendered(state.realm.name, to, site, parts)


def _rendered(organization: str, to: str, site: str, parts: _Parts) -> RenderedMail:
    facts = {"organization": organization, "site": site, "parts": parts}
    return RenderedMail(
        to=to,
        subject=" ".join(parts.subject.split()),
        text=templates().get_template("letter.txt").render(facts),
        html=templates().get_template("letter.html").render(facts),
        headers=unsubscribe_headers(parts.unsubscribe) if parts.unsubscribe else (),
    )


def unsubscribe_headers(address: str) -> tuple[tuple[str, str], ...]:
    """By which mail programs turn such mails off, with one click (RFC 8058)."""
    return (
        ("List-Unsubscribe", f"<{address}>"),
        ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
    )


@cache
def templates() -> "jinja2.Environment":
    """The forms of mails."""
    import jinja2  # Only where there are mails.

    return jinja2.Environment(
        loader=jinja2.PackageLoader("tertulia.outbound"),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _invitation(state: State, links: Links, mail: Mail, now: float) -> _Parts | None:
    invitation = state.invitations.get(mail.about)
    if invitation is None or not invitation.is_open(now):
        return None
    inviter, name = state.users[invitation.inviter_id], state.realm.name
    until = (
        "The invitation is for you alone, and can be used once."
        if invitation.expires_at is None
        else f"The invitation is for you alone, and lasts until {_day(invitation.expires_at)}."
    )
    return _Parts(
        subject=f"{inviter.full_name} invites you to {name}",
        paragraphs=(
            "Hello!",
            f"{inviter.full_name} would like to talk with you in {name}, where a team writes"
            " to each other in channels and topics.",
        ),
        button="Join",
        link=links.invitation(mail.site, invitation),
        ending=f"{until} If you do not know why you got it, you can leave it alone.",
    )


def _confirm_sign_up(state: State, links: Links, mail: Mail, now: float) -> _Parts | None:
    confirmation = state.confirmations.get(mail.about)
    if confirmation is None or confirmation.expires_at <= now:
        return None
    return _Parts(
        subject=f"Join {state.realm.name}",
        paragraphs=(
            "Hello!",
            f"Somebody, probably you, wants to join {state.realm.name} with this address.",
        ),
        button="Join",
        link=links.sign_up(mail.site, confirmation),
        ending=f"The link lasts until {_day(confirmation.expires_at)}. If it was not you, you"
        " can leave it alone: nothing happens.",
    )


def _has_account(state: State, links: Links, mail: Mail, now: float) -> _Parts | None:
    return _Parts(
        subject=f"You have an account in {state.realm.name}",
        paragraphs=(
            "Hello!",
            f"Somebody, probably you, wanted to join {state.realm.name} with this address. There"
            f" is an account with it already: sign in at {mail.site}, or with any client of Zulip.",
        ),
        ending="If it was not you, you can leave it alone.",
    )


def _confirm_address(state: State, links: Links, mail: Mail, now: float) -> _Parts | None:
    confirmation = state.confirmations.get(mail.about)
    user = None if confirmation is None else state.users.get(confirmation.user_id)
    if confirmation is None or user is None or confirmation.expires_at <= now:
        return None
    return _Parts(
        subject=f"Confirm your address for {state.realm.name}",
        paragraphs=(
            f"Hello {user.full_name}!",
            f"Your account in {state.realm.name} is to have this address instead of"
            f" {user.address}.",
        ),
        button="Confirm",
        link=links.address(mail.site, confirmation),
        ending=f"The link lasts until {_day(confirmation.expires_at)}. If you did not ask for it,"
        " you can leave it alone: the address stays as it is.",
    )


def _reset_password(state: State, links: Links, mail: Mail, now: float) -> _Parts | None:
    user, expires_at = state.users.get(mail.about), int(mail.facts["expires_at"])
    credential = state.credentials.get(mail.about)
    if user is None or credential is None or not user.is_active or expires_at <= now:
        return None
    if mail.facts["mark"] != links.password_mark(credential):
        return None
    return _Parts(
        subject=f"A new password for {state.realm.name}",
        paragraphs=(
            f"Hello {user.full_name}!",
            f"Somebody, probably you, has forgotten the password of your account in"
            f" {state.realm.name}.",
        ),
        button="Choose a new password",
        link=links.reset(mail.site, credential, expires_at),
        ending=f"The link can be used once, and lasts until {_day(expires_at)}. If it was not"
        " you, you can leave it alone: your password stays as it is.",
    )


def _language(state: State, user: User) -> str:
    """The language of mails to the account, of those that they are written in."""
    return "es" if state.settings[user.id].default_language.startswith("es") else "en"


def _account_mail(
    words: Mapping[str, tuple[str, str, str]], can_be_off: Unsubscribing | None = None
) -> "_Writer":
    """Writes a mail about an account from a subject, a paragraph and an ending in each language,
    in which the organization, the account's name and the mail's facts can stand. `can_be_off`: as
    what people turn such mails off."""

    def written(state: State, links: Links, mail: Mail, now: float) -> _Parts | None:
        user = state.users.get(mail.about)
        if user is None:
            return None
        language = _language(state, user)
        facts = {name: text for name, text in mail.facts.items() if name != "at"}
        if "at" in mail.facts:
            facts["at"] = datetime.fromtimestamp(int(mail.facts["at"]), UTC).strftime(
                "%Y-%m-%d %H:%M UTC"
            )
        facts |= {"organization": state.realm.name, "site": mail.site}
        subject, said, ending = (text.format_map(facts) for text in words[language])
        greeting = _HELLO[language].format(name=user.full_name)
        off = can_be_off and links.unsubscribing(mail.site, user.id, can_be_off)
        return _Parts(
            subject=subject,
            paragraphs=(greeting, said),
            ending=ending,
            language=language,
            unsubscribe=off or "",
        )

    return written


_HELLO: Final = {"en": "Hello {name}!", "es": "¡Hola, {name}!"}
_NOT_YOU: Final = {
    "en": "If this was not you, write to the people who run the organization at once.",
    "es": "Si no has sido tú, escribe enseguida a quienes llevan la organización.",
}
_ADDRESS_CHANGED: Final = {
    "en": (
        "Your address for {organization} has changed",
        "Your account in {organization} has the address {address} now, and mails go there from now"
        " on.",
        _NOT_YOU["en"],
    ),
    "es": (
        "Tu dirección en {organization} ha cambiado",
        "Tu cuenta en {organization} tiene ahora la dirección {address}, y los correos irán allí.",
        _NOT_YOU["es"],
    ),
}
_PASSWORD_RESET: Final = {
    "en": (
        "Your password for {organization} has changed",
        "Your account in {organization} has a new password. Every browser and every program that"
        " was signed in to it has to sign in again.",
        _NOT_YOU["en"],
    ),
    "es": (
        "Tu contraseña de {organization} ha cambiado",
        "Tu cuenta en {organization} tiene una contraseña nueva. Todos los navegadores y programas"
        " que la usaban tienen que iniciar sesión otra vez.",
        _NOT_YOU["es"],
    ),
}
_PASSWORD_CHANGED: Final = {
    "en": (
        "Your password for {organization} has changed",
        "Somebody who knew the password of your account in {organization} has changed it. The other"
        " browsers are signed out; programs go on with the same API key.",
        "If this was not you, choose another one at {site}/reset, and write to the people who run"
        " the organization.",
    ),
    "es": (
        "Tu contraseña de {organization} ha cambiado",
        "Alguien que conocía la contraseña de tu cuenta en {organization} la ha cambiado. Los demás"
        " navegadores han salido; los programas siguen con la misma clave de API.",
        "Si no has sido tú, elige otra en {site}/reset y escribe a quienes llevan la organización.",
    ),
}
_KEY_CHANGED: Final = {
    "en": (
        "Your API key for {organization} has changed",
        "Your account in {organization} has another API key. Programs that had the one before have"
        " to sign in again.",
        "If this was not you, choose another password at {site}/reset, and write to the people who"
        " run the organization.",
    ),
    "es": (
        "Tu clave de API de {organization} ha cambiado",
        "Tu cuenta en {organization} tiene otra clave de API. Los programas que tenían la anterior"
        " tienen que iniciar sesión otra vez.",
        "Si no has sido tú, elige otra contraseña en {site}/reset y escribe a quienes llevan la"
        " organización.",
    ),
}
_AGENT_KEY_MADE: Final = {
    "en": (
        "An agent has a key to your account in {organization}",
        "A key was made with which an agent can act for you in {organization}: {agent}. What it may"
        " do, and how to take the key away, is in your settings, under Agents.",
        "If this was not you, choose another password at {site}/reset, which ends all such keys,"
        " and write to the people who run the organization.",
    ),
    "es": (
        "Un agente tiene una clave de tu cuenta en {organization}",
        "Se ha creado una clave con la que un agente puede actuar por ti en {organization}:"
        " {agent}. Qué puede hacer, y cómo retirarla, está en tus ajustes, en Agentes.",
        "Si no has sido tú, elige otra contraseña en {site}/reset, con lo que terminan todas estas"
        " claves, y escribe a quienes llevan la organización.",
    ),
}
_NEW_SIGN_IN: Final = {
    "en": (
        "A new sign-in to {organization}",
        "Somebody signed in to your account in {organization} from where it was not signed in to"
        " before: on {at}, from the address {address}, with: {agent}.",
        "If this was you, you can leave it alone. If not, choose another password at {site}/reset."
        " These mails can be turned off in the settings, with the notifications.",
    ),
    "es": (
        "Un inicio de sesión nuevo en {organization}",
        "Alguien ha iniciado sesión en tu cuenta de {organization} desde donde no se había hecho"
        " antes: el {at}, desde la dirección {address}, con: {agent}.",
        "Si has sido tú, no hagas nada. Si no, elige otra contraseña en {site}/reset. Estos correos"
        " se desactivan en los ajustes, con las notificaciones.",
    ),
}


_DEACTIVATED: Final = {
    "en": (
        "Your account in {organization} was deactivated",
        "Your account in {organization} ({site}) was deactivated. You cannot sign in to it any"
        " more.",
        "If you think that this is a mistake, write to the people who run the organization.",
    ),
    "es": (
        "Tu cuenta en {organization} se ha desactivado",
        "Tu cuenta en {organization} ({site}) se ha desactivado. Ya no puedes iniciar sesión en"
        " ella.",
        "Si crees que es un error, escribe a quienes llevan la organización.",
    ),
}
_DEACTIVATED_WITH_A_WORD: Final = {
    "en": (*_DEACTIVATED["en"][:2], "The administrators add: {comment}"),
    "es": (*_DEACTIVATED["es"][:2], "La administración añade: {comment}"),
}


def _deactivated(state: State, links: Links, mail: Mail, now: float) -> _Parts | None:
    words = _DEACTIVATED_WITH_A_WORD if mail.facts.get("comment") else _DEACTIVATED
    return _account_mail(words)(state, links, mail, now)


_WELCOME: Final = {
    "en": (
        "Welcome to {organization}",
        "You are one of {organization} now. Sign in at {site} with any browser, and install it from"
        " there on a phone; every client of Zulip works too. Talk is in channels, and in them by"
        " topics: follow those that matter to you, and mute the others.",
        "When you are not there, you are told by mail of what is written to you. How and of what is"
        " yours to choose, in the settings: {site}/#settings/notifications",
    ),
    "es": (
        "Te damos la bienvenida a {organization}",
        "Ya formas parte de {organization}. Entra en {site} con cualquier navegador, e instálalo"
        " desde ahí en el teléfono; también sirve cualquier cliente de Zulip. Se habla en canales,"
        " y en ellos por temas: sigue los que te importan y silencia los demás.",
        "Cuando no estés, te avisaremos por correo de lo que te escriban. Cómo y de qué lo eliges"
        " tú, en los ajustes: {site}/#settings/notifications",
    ),
}


def _day(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%d %B %Y, %H:%M UTC").lstrip("0")


_Writer = Callable[[State, Links, Mail, float], _Parts | None]
_WRITERS: Final[Mapping[MailKind, _Writer]] = {
    MailKind.INVITATION: _invitation,
    MailKind.CONFIRM_SIGN_UP: _confirm_sign_up,
    MailKind.HAS_ACCOUNT: _has_account,
    MailKind.CONFIRM_ADDRESS: _confirm_address,
    MailKind.ADDRESS_CHANGED: _account_mail(_ADDRESS_CHANGED),
    MailKind.FORGOTTEN: _reset_password,
    MailKind.CREDENTIAL_CHANGED: _account_mail(_PASSWORD_RESET),
    MailKind.NEW_SIGN_IN: _account_mail(_NEW_SIGN_IN, Unsubscribing.SIGN_IN),
    MailKind.PASSWORD_CHANGED: _account_mail(_PASSWORD_CHANGED),
    MailKind.KEY_CHANGED: _account_mail(_KEY_CHANGED),
    MailKind.DEACTIVATED: _deactivated,
    MailKind.WELCOME: _account_mail(_WELCOME),
    MailKind.AGENT_KEY_MADE: _account_mail(_AGENT_KEY_MADE),
}
