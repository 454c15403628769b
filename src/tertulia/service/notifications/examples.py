"""Examples of all emails with made-up content, to check their design: long names, right-to-left
text, images, code, and quotes."""

import struct
import zlib
from collections.abc import Mapping
from typing import Final

from tertulia.model.invitations import Confirmation, Invitation
from tertulia.model.mail import Mail, MailKind
from tertulia.model.organization import Realm
from tertulia.model.users import Credential, PersonalSettings, User
from tertulia.outbound import mail_templates
from tertulia.outbound.conversation_mails import (
    ConversationMail,
    QuotedConversation,
    QuotedMessage,
    rendered,
)
from tertulia.outbound.mail_templates import InlinePicture, MailTemplates, RenderedMail
from tertulia.outbound.readable_html import readable
from tertulia.service.links import Links
from tertulia.state.state import State
from tertulia.texts import texts

_INVITER, _READER = 1, 2
_LONG: Final = "Maximiliane Wolkenstein-Hohenfels von und zu Obersulmetingen"
_FROM_THE_RIGHT: Final = "נועה לוי"
_READERS: Final = {"ja": "田中 美咲"}
_NOW: Final = 1_800_000_000
_PATH: Final = "1/ab/cdef/plan.png"
_PICTURE: Final = "picture-1@tertulia"
_SAID: Final = (
    ("Cleo", "09:58", "<p>Who brings the cups?</p>", True),
    (
        _LONG,
        "10:02",
        '<p><span class="user-mention">@Noa</span> could you look at <em>this</em> before '
        '<strong>noon</strong>? <a href="https://example.com/a/very/long/address/that/has/no/place/to/break?query='
        'one-thing-and-another-thing-and-one-more">https://example.com/a/very/long/address/that/has/no'
        "/place/to/break?query=one-thing-and-another-thing-and-one-more</a></p>"
        f'<div class="message_inline_image"><a href="/user_uploads/{_PATH}" title="plan.png">'
        f'<img src="/user_uploads/thumbnail/{_PATH}/840x560.webp"></a></div>',
        False,
    ),
    (
        _FROM_THE_RIGHT,
        "10:03",
        "<p>אני מביאה את הכוסות. <code>make check</code> עובר.</p>",
        False,
    ),
    (
        "田中 美咲",
        "10:04",
        "<blockquote><p>一つずつ進めましょう。</p></blockquote><p>了解です。木曜日までに直します。</p>"
        '<div class="codehilite"><pre><code>for cup in cups:\n    wash(cup, until=lambda one: '
        "one.is_clean and not one.is_cracked)  # a long line\n</code></pre></div><ul><li>cups</li>"
        "<li>plates</li></ul><table><tbody><tr><th>what</th><th>how many</th></tr><tr><td>cups</td>"
        "<td>12</td></tr></tbody></table>",
        False,
    ),
)


def examples(links: Links, site: str, language: str) -> Mapping[str, RenderedMail]:
    """Return the emails in a language, by name."""
    state = _made_up(language)
    mails = {"trial": mail_templates.test_mail(state, state.users[_READER].address, site)}
    templates = MailTemplates(lambda: state, links)
    for kind, facts in _facts(state, links).items():
        for name, some in facts.items():
            mail = Mail(kind=kind, to="noa@example.com", site=site, about=_about(kind), facts=some)
            written = templates.render(mail, _NOW)
            if written is not None:
                mails[name] = written
    shown = {
        "missed_messages": _missed(state, site, language),
        "missed_messages_direct": _direct(state, site, language),
        "missed_messages_hidden": _hidden(state, site, language),
        "digest": _digest(state, site, language),
    }
    return mails | {name: rendered(mail, "example.com") for name, mail in shown.items()}


def _made_up(language: str) -> State:
    state = State()
    state.realms.put(Realm(uuid="", name="Casa Ñandú", created_at=0, default_language=language))
    reader = _READERS.get(language, "Noa Berg")
    for user_id, address, name in (
        (_INVITER, "max@example.com", _LONG),
        (_READER, "noa@example.com", reader),
    ):
        state.users.put(User(id=user_id, address=address, full_name=name))
        state.settings.put(PersonalSettings(user_id=user_id, default_language=language))
    state.credentials.put(Credential(user_id=_READER, key_digest="", key_sealed=""))
    for number, until in ((1, _NOW + 864_000), (2, None)):
        state.invitations.put(
            Invitation(
                id=number, inviter_id=_INVITER, created_at=_NOW, expires_at=until, nonce="made up"
            )
        )
    state.confirmations.put(
        Confirmation(
            id=1, address="noa@example.com", user_id=_READER, expires_at=_NOW + 864_000, nonce=""
        )
    )
    return state


def _about(kind: MailKind) -> int:
    """Return the ID that an email of this kind is about."""
    of_one = {MailKind.INVITATION, MailKind.CONFIRM_SIGN_UP, MailKind.CONFIRM_ADDRESS}
    return 1 if kind in of_one else _READER


def _facts(state: State, links: Links) -> Mapping[MailKind, Mapping[str, dict[str, str]]]:
    """Return the facts of the emails by kind and name; most kinds have one example."""
    of_link = {
        "expires_at": str(_NOW + 3600),
        "mark": links.password_mark(state.credentials[_READER]),
    }
    facts: dict[MailKind, dict[str, dict[str, str]]] = {
        MailKind.FORGOTTEN: {"forgotten": of_link},
        MailKind.SIGN_IN_LINK: {"sign_in_link": {**of_link, "flow": ""}},
        MailKind.ACCOUNT_IMPORTED: {"account_imported": of_link},
        MailKind.NEW_SIGN_IN: {
            "new_sign_in": {
                "at": str(_NOW),
                "address": "2001:db8:85a3::8a2e:370:7334",
                "agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            }
        },
        MailKind.ADDRESS_CHANGED: {"address_changed": {"address": "new@example.com"}},
        MailKind.DEACTIVATED: {
            "deactivated": {},
            "deactivated_with_a_word": {"comment": "Thank you for ten years."},
        },
        MailKind.AGENT_KEY_MADE: {"agent_key_made": {"agent": "Claude"}},
        MailKind.RECOVERY_CODE_USED: {"recovery_code_used": {"left": "9"}},
    }
    shown = {MailKind.MISSED_MESSAGES, MailKind.DIGEST}
    return {kind: facts.get(kind, {kind.value: {}}) for kind in MailKind if kind not in shown}


def _missed(state: State, site: str, language: str) -> ConversationMail:
    words, name = texts(language, "conversations"), state.realm.name
    return _mail(
        state,
        site,
        language,
        title="#kitchen > cups",
        opening=words("opening_mentioned", organization=name),
        conversations=(
            _conversation(
                site, "#kitchen > cups", _SAID, words("more", count=4), with_picture=True
            ),
        ),
        endings=(words("reply"), words("why", settings=site)),
        pictures=(
            InlinePicture(content_id=_PICTURE, media_type="image/png", content=_striped(640, 360)),
        ),
    )


def _direct(state: State, site: str, language: str) -> ConversationMail:
    words, name = texts(language, "conversations"), state.realm.name
    title = words("direct", names=_FROM_THE_RIGHT)
    said = (
        (_FROM_THE_RIGHT, "10:03", "<p>מתי הפגישה (Zoom) מחר?</p><p>And in English?</p>", False),
    )
    return _mail(
        state,
        site,
        language,
        title=title,
        opening=words("opening_direct", name=_FROM_THE_RIGHT, organization=name),
        conversations=(_conversation(site, title, said, ""),),
        endings=(words("no_reply", organization=name), words("why", settings=site)),
    )


def _hidden(state: State, site: str, language: str) -> ConversationMail:
    words, name = texts(language, "conversations"), state.realm.name
    return _mail(
        state,
        site,
        language,
        title=words("hidden_subject"),
        opening=words("hidden", count=3, organization=name),
        conversations=(),
        endings=(words("hidden_by_realm"), words("why", settings=site)),
    )


def _digest(state: State, site: str, language: str) -> ConversationMail:
    words, name = texts(language, "conversations"), state.realm.name
    people = words("digest_and_others", people=f"{_LONG}, {_FROM_THE_RIGHT}, 田中 美咲")
    more = words("digest_messages", count=17, people=people)
    return _mail(
        state,
        site,
        language,
        title=words("digest_subject", organization=name),
        opening=words("digest_opening", name=state.users[_READER].full_name, organization=name),
        conversations=(
            _conversation(site, "#kitchen > cups", _SAID[:1], more),
            _conversation(site, "#מטבח > כוסות", _SAID[2:3], more),
            _conversation(site, "#運営 > 木曜日の会議", _SAID[3:], more),
        ),
        endings=(words("digest_why", settings=site),),
    )


def _mail(
    state: State,
    site: str,
    language: str,
    title: str,
    opening: str,
    conversations: tuple[QuotedConversation, ...],
    endings: tuple[str, ...],
    pictures: tuple[InlinePicture, ...] = (),
) -> ConversationMail:
    words = texts(language, "conversations")
    button = "button" if len(conversations) == 1 else "hidden_button"
    return ConversationMail(
        to="noa@example.com",
        language=language,
        title=title,
        opening=opening,
        conversations=conversations,
        link=site,
        button=words(button, organization=state.realm.name),
        endings=endings,
        unsubscribe=site,
        unsubscribe_words=words("unsubscribe"),
        organization=state.realm.name,
        site=site,
        list_id="channel-1",
        pictures=pictures,
    )


def _conversation(
    site: str,
    name: str,
    said: tuple[tuple[str, str, str, bool], ...],
    more: str,
    *,
    with_picture: bool = False,
) -> QuotedConversation:
    pictures = {_PATH: _PICTURE} if with_picture else {}
    messages = []
    for sender, at, html, is_before in said:
        text = readable(html, site, pictures)
        messages.append(
            QuotedMessage(
                sender=sender, time=at, html=text.html, text=text.text, is_before=is_before
            )
        )
    return QuotedConversation(name=name, link=site, messages=tuple(messages), more=more)


def _striped(width: int, height: int) -> bytes:
    """Return a PNG image."""
    rows = b"".join(
        b"\0" + bytes((220 - row // 4, 160, 90 + row // 4)) * width for row in range(height)
    )

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
