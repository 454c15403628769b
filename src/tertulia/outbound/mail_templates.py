"""Rendering emails about accounts."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct, structs

from tertulia.model.invitations import Confirmation, Invitation
from tertulia.model.mail import Mail, MailKind, Unsubscribing
from tertulia.model.users import Credential
from tertulia.state.state import State
from tertulia.texts import language_for, language_of, texts

if TYPE_CHECKING:
    import jinja2


class MailLinks(Protocol):
    """Creates links that work without signing in."""

    def invitation(self, site: str, invitation: Invitation) -> str: ...

    def sign_up(self, site: str, confirmation: Confirmation) -> str: ...

    def address(self, site: str, confirmation: Confirmation) -> str: ...

    def reset(self, site: str, credential: Credential, expires_at: int) -> str: ...

    def sign_in(self, site: str, credential: Credential, expires_at: int, flow: str) -> str: ...

    def password_mark(self, credential: Credential) -> str: ...

    def unsubscribing(self, site: str, user_id: int, what: Unsubscribing) -> str: ...


class InlinePicture(Struct, frozen=True, kw_only=True):
    """An attached image that the email shows."""

    content_id: str
    """Its `Content-ID`."""
    media_type: str
    """`image/…`"""
    content: bytes


class RenderedMail(Struct, frozen=True, kw_only=True):
    """An email that is ready to be sent."""

    to: str
    subject: str
    text: str
    html: str
    headers: tuple[tuple[str, str], ...] = ()
    """Additional headers."""
    pictures: tuple[InlinePicture, ...] = ()


class _Content(Struct, frozen=True, kw_only=True):
    """The template's variables."""

    subject: str
    paragraphs: tuple[str, ...]
    button: str = ""
    link: str = ""
    or_open: str = ""
    """A sentence with the link as text, in case the button doesn't work."""
    ending: str = ""
    language: str = "en"
    unsubscribe: str = ""
    """The link that turns off these emails; may be empty."""


class MailTemplates:
    """Renders emails with the organization's current state."""

    def __init__(self, state: Callable[[], State], links: MailLinks) -> None:
        self._state = state
        self._links = links

    async def rendered(self, mail: Mail, now: float) -> RenderedMail | None:
        """Render an email, as `RendersMails` declares."""
        return self.render(mail, now)

    def render(self, mail: Mail, now: float) -> RenderedMail | None:
        """Render an email; None if it is no longer needed."""
        state = self._state()
        parts = _WRITERS[mail.kind](state, self._links, mail, now)
        return None if parts is None else _rendered(state.realm.name, mail.to, mail.site, parts)


def test_mail(state: State, to: str, site: str) -> RenderedMail:
    """Return a test email in the organization's language."""
    organization = state.realm.name
    text = texts(language_of(state.realm.default_language), "emails")
    subject = text("test_subject", organization=organization)
    parts = _Content(subject=subject, paragraphs=(text("test_body"),))
    return _rendered(organization, to, site, parts)


def _rendered(organization: str, to: str, site: str, parts: _Content) -> RenderedMail:
    facts = {"organization": organization, "site": site, "parts": parts}
    return RenderedMail(
        to=to,
        subject=" ".join(parts.subject.split()),
        text=templates().get_template("letter.txt").render(facts),
        html=templates().get_template("letter.html").render(facts),
        headers=unsubscribe_headers(parts.unsubscribe) if parts.unsubscribe else (),
    )


def unsubscribe_headers(address: str) -> tuple[tuple[str, str], ...]:
    """Return headers for one-click unsubscribing (RFC 8058)."""
    return (
        ("List-Unsubscribe", f"<{address}>"),
        ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
    )


@cache
def templates() -> "jinja2.Environment":
    """Return the templates' environment."""
    import jinja2  # Imported here: only nodes that send email need it.

    return jinja2.Environment(
        loader=jinja2.PackageLoader("tertulia.outbound"),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _email(
    state: State, mail: Mail, name: str, language: str, facts: Mapping[str, str], link: str = ""
) -> _Content:
    """Return the content of the email with that name, with `facts` filled in."""
    emails = texts(language, "emails")
    letter = emails.texts["letters"][name]
    known = {"organization": state.realm.name, "site": mail.site, **facts}
    greeting = "greeting" if "name" in known else "greeting_without_name"
    return _Content(
        subject=emails.filled(letter["subject"], **known),
        paragraphs=(emails(greeting, **known), emails.filled(letter["body"], **known)),
        button=letter.get("button", ""),
        link=link,
        or_open=emails("link_again", link=link),
        ending=emails.filled(letter["ending"], **known),
        language=language,
    )


def _language_at(state: State, address: str) -> str:
    """Return the language of the account with this address, or of the organization."""
    user = state.user_with_address(address)
    return language_for(state, user) if user else language_of(state.realm.default_language)


def _invitation(state: State, links: MailLinks, mail: Mail, now: float) -> _Content | None:
    invitation = state.invitations.get(mail.about)
    if invitation is None or not invitation.is_open(now):
        return None
    language, facts = _language_at(state, mail.to), {}
    facts["inviter"] = state.users[invitation.inviter_id].full_name
    name = "invitation_without_end"
    if invitation.expires_at is not None:
        name, facts["until"] = "invitation", _date_and_time(invitation.expires_at, language)
    return _email(state, mail, name, language, facts, links.invitation(mail.site, invitation))


def _confirm_sign_up(state: State, links: MailLinks, mail: Mail, now: float) -> _Content | None:
    confirmation = state.confirmations.get(mail.about)
    if confirmation is None or confirmation.expires_at <= now:
        return None
    language = _language_at(state, mail.to)
    facts = {"until": _date_and_time(confirmation.expires_at, language)}
    link = links.sign_up(mail.site, confirmation)
    return _email(state, mail, "confirm_sign_up", language, facts, link)


def _has_account(state: State, links: MailLinks, mail: Mail, now: float) -> _Content | None:
    return _email(state, mail, "has_account", _language_at(state, mail.to), {})


def _confirm_address(state: State, links: MailLinks, mail: Mail, now: float) -> _Content | None:
    confirmation = state.confirmations.get(mail.about)
    user = None if confirmation is None else state.users.get(confirmation.user_id)
    if confirmation is None or user is None or confirmation.expires_at <= now:
        return None
    language = language_for(state, user)
    facts = {
        "name": user.full_name,
        "before": user.address,
        "until": _date_and_time(confirmation.expires_at, language),
    }
    link = links.address(mail.site, confirmation)
    return _email(state, mail, "confirm_address", language, facts, link)


def _password_mail(name: str) -> "_Writer":
    """Return a function that renders an email with a link to set a password or sign in."""

    def written(state: State, links: MailLinks, mail: Mail, now: float) -> _Content | None:
        user, expires_at = state.users.get(mail.about), int(mail.facts["expires_at"])
        credential = state.credentials.get(mail.about)
        if user is None or credential is None or not user.is_active or expires_at <= now:
            return None
        if mail.facts["mark"] != links.password_mark(credential):
            return None
        language = language_for(state, user)
        facts = {"name": user.full_name, "until": _date_and_time(expires_at, language)}
        if mail.kind is MailKind.SIGN_IN_LINK:
            link = links.sign_in(mail.site, credential, expires_at, mail.facts["flow"])
        else:
            link = links.reset(mail.site, credential, expires_at)
        return _email(state, mail, name, language, facts, link)

    return written


def _account_mail(name: str, can_be_off: Unsubscribing | None = None) -> "_Writer":
    """Return a function that renders an email about an account. `can_be_off` is the kind of emails
    that its link turns off."""

    def written(state: State, links: MailLinks, mail: Mail, now: float) -> _Content | None:
        user = state.users.get(mail.about)
        if user is None:
            return None
        facts = {**mail.facts, "name": user.full_name}
        if "at" in facts:
            facts["at"] = datetime.fromtimestamp(int(facts["at"]), UTC).strftime(
                "%Y-%m-%d %H:%M UTC"
            )
        parts = _email(state, mail, name, language_for(state, user), facts)
        if can_be_off is None:
            return parts
        off = links.unsubscribing(mail.site, user.id, can_be_off)
        return structs.replace(parts, unsubscribe=off)

    return written


def _deactivated(state: State, links: MailLinks, mail: Mail, now: float) -> _Content | None:
    name = "deactivated_with_a_word" if mail.facts.get("comment") else "deactivated"
    return _account_mail(name)(state, links, mail, now)


def _date_and_time(at: int, language: str) -> str:
    """Return a time as the language writes it, in UTC."""
    from babel.dates import format_date  # Imported here: only emails need it.

    then = datetime.fromtimestamp(at, UTC)
    date = format_date(then, "long", locale=language)
    return texts(language, "emails")("time", date=date, time=f"{then:%H:%M}")


_Writer = Callable[[State, MailLinks, Mail, float], _Content | None]
_WRITERS: Final[Mapping[MailKind, _Writer]] = {
    MailKind.INVITATION: _invitation,
    MailKind.CONFIRM_SIGN_UP: _confirm_sign_up,
    MailKind.HAS_ACCOUNT: _has_account,
    MailKind.ACCOUNT_FOUND: _account_mail("account_found"),
    MailKind.CONFIRM_ADDRESS: _confirm_address,
    MailKind.ADDRESS_CHANGED: _account_mail("address_changed"),
    MailKind.FORGOTTEN: _password_mail("forgotten"),
    MailKind.SIGN_IN_LINK: _password_mail("sign_in_link"),
    MailKind.ACCOUNT_IMPORTED: _password_mail("account_imported"),
    MailKind.CREDENTIAL_CHANGED: _account_mail("password_reset"),
    MailKind.NEW_SIGN_IN: _account_mail("new_sign_in", Unsubscribing.SIGN_IN),
    MailKind.PASSWORD_CHANGED: _account_mail("password_changed"),
    MailKind.KEY_CHANGED: _account_mail("key_changed"),
    MailKind.DEACTIVATED: _deactivated,
    MailKind.WELCOME: _account_mail("welcome"),
    MailKind.AGENT_KEY_MADE: _account_mail("agent_key_made"),
    MailKind.SECOND_FACTOR_ADDED: _account_mail("second_factor_added"),
    MailKind.SECOND_FACTOR_REMOVED: _account_mail("second_factor_removed"),
    MailKind.RECOVERY_CODES_REPLACED: _account_mail("recovery_codes_replaced"),
    MailKind.RECOVERY_CODE_USED: _account_mail("recovery_code_used"),
    MailKind.CODES_GUESSED: _account_mail("codes_guessed"),
}
