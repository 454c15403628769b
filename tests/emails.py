"""Outgoing emails in tests, collected instead of sent."""

import re

import pytest

from tertulia.outbound.mail_sender import MailSender
from tertulia.outbound.mail_templates import MailTemplates, RenderedMail
from tests.support import Organization


class CollectingTransport:
    """A transport that keeps all emails."""

    def __init__(self) -> None:
        self.letters: list[RenderedMail] = []

    async def send(self, letter: RenderedMail, mail_id: str) -> None:
        self.letters.append(letter)


@pytest.fixture
def no_email_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prevent nodes from sending emails by themselves; use `mailed`."""

    async def idle(self: MailSender) -> float:
        return 3600.0

    monkeypatch.setattr(MailSender, "once", idle)


async def due_emails(org: Organization) -> list[RenderedMail]:
    """Return the emails that are due now, and remove them from the queue."""
    hand, node = CollectingTransport(), org.node
    letters = MailTemplates(lambda: node.state, node.links)
    await MailSender(node.store, letters, hand, node.clock).deliver()
    return hand.letters


def link_path(letter: RenderedMail) -> str:
    """Return the path of the link in the email."""
    (found,) = re.findall(r"http://chat\.test(/(?:join|confirm|reset|login/link)/\S+)", letter.text)
    assert f'href="http://chat.test{found}"' in letter.html
    path: str = found
    return path
