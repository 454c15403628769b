"""All kinds of mails with made-up contents, to look at them while one works on their forms."""

import time
from collections.abc import Mapping

from tertulia.model.mail import Mail, MailKind
from tertulia.model.users import User
from tertulia.outbound import mail_templates
from tertulia.outbound.conversation_mails import (
    ConversationMail,
    ShownConversation,
    ShownMessage,
    rendered,
)
from tertulia.outbound.mail_templates import MailTemplates, RenderedMail
from tertulia.outbound.words.languages import SAID
from tertulia.service.node import Node

_FACTS = {"at": "0", "address": "192.0.2.1", "agent": "Firefox", "expires_at": "0", "mark": ""}


def examples(node: Node, user: User, site: str) -> Mapping[str, RenderedMail]:
    """The mails, by name. Those of accounts are as this user would get them; those about an
    invitation or a link are there as far as there is one."""
    found = {"trial": mail_templates.trial(node.state, user.address, site)}
    templates = MailTemplates(lambda: node.state, node.links)
    about = {
        MailKind.INVITATION: next(iter(node.state.invitations.rows), None),
        MailKind.CONFIRM_SIGN_UP: next(iter(node.state.confirmations.rows), None),
    }
    for kind in MailKind:
        if kind in {MailKind.MISSED_MESSAGES, MailKind.DIGEST}:
            continue
        number = about.get(kind, user.id)
        mail = Mail(kind=kind, to=user.address, site=site, about=number, facts=_FACTS)
        written = templates.render(mail, time.time())
        if written is not None:
            found[kind.value] = written
    for language in SAID:
        missed = _missed(node, user, site, language)
        found[f"{MailKind.MISSED_MESSAGES.value} ({language})"] = rendered(missed, "example.com")
    return found


def _missed(node: Node, user: User, site: str, language: str) -> ConversationMail:
    words, name = SAID[language].conversations, node.state.realm.name
    said = (
        ("Cleo", "09:58", "<p>Who brings the cups?</p>", True),
        ("Ben", "10:02", f"<p>@{user.full_name} could you look at <em>this</em>?</p>", False),
        ("Ben", "10:03", "<blockquote><p>One thing after the other.</p></blockquote>", False),
    )
    return ConversationMail(
        to=user.address,
        language=language,
        title="#kitchen > cups",
        opening=words["opening_mentioned"].format(organization=name),
        conversations=(
            ShownConversation(
                name="#kitchen > cups",
                link=site,
                messages=tuple(
                    ShownMessage(sender=sender, time=at, html=html, text=html, is_before=before)
                    for sender, at, html, before in said
                ),
                more=words["more"].format(count=4),
            ),
        ),
        link=site,
        button=words["button"],
        endings=(words["no_reply"].format(organization=name), words["why"].format(settings=site)),
        unsubscribe=site,
        unsubscribe_words=words["unsubscribe"],
        organization=name,
        site=site,
        list_id="channel-1",
    )
