"""Signing in people whom a sign-in method has proven to be who they are."""

import logging

from starlette.responses import Response

from tertulia.domain.accounts import identities
from tertulia.domain.accounts.identities import NotRecognized
from tertulia.identity.provider import ProviderDown
from tertulia.model.errors import Refused
from tertulia.model.identities import ProvenIdentity
from tertulia.model.invitations import Invitation
from tertulia.model.users import User
from tertulia.service.sign_in_methods import SignInMethod
from tertulia.wire.http import sign_in
from tertulia.wire.pages.form_flow import PageRequest, to_sign_in
from tertulia.wire.pages.sign_in_flow import SignInFlow, finish_sign_in

logger = logging.getLogger("tertulia.sign_in")


async def _recognized(
    page: PageRequest, method: SignInMethod, proven: ProvenIdentity, flow: SignInFlow
) -> User:
    """Return the person's account, a new one if the method creates them. Raises as
    `identities.recognize`."""
    node = page.node
    opened = node.links.opened(node.state, flow.invitation) if flow.invitation else None
    user: User = await node.log.submit(
        None,
        identities.recognize,
        proven,
        method.rules,
        await node.vault.credential(0, None),
        node.config.mail_site,
        node.renderer.render,
        opened.id if isinstance(opened, Invitation) else None,
    )
    return user


async def finish_proven(
    page: PageRequest, method: SignInMethod, proven: ProvenIdentity, flow: SignInFlow
) -> Response:
    """Sign the person in, or show a page that says why they can't be."""
    try:
        user = await _recognized(page, method, proven, flow)
        return await finish_sign_in(page, user, method.name, flow)
    except Refused as refusal:
        sign_in.log_failed_sign_in(page.request, method.name)
        return _refused(page, _words_of(page, refusal))


def not_proven(page: PageRequest, method: SignInMethod, reason: str, sender: str = "") -> Response:
    """Log why nobody is signed in, and show a page that doesn't say it, because it may help an
    attacker."""
    fields = {"method": method.name, "reason": reason, **({"from": sender} if sender else {})}
    logger.warning("refused a sign-in", extra={"fields": fields})
    sign_in.log_failed_sign_in(page.request, method.name)
    return _refused(page, page.say("provider_refused", title=method.label))


def provider_down(page: PageRequest, method: SignInMethod, error: ProviderDown) -> Response:
    """Log why the provider can't be used, and show a page that says so."""
    logger.warning("%s can't be used: %s", method.name, error.reason)
    return page.note(
        page.say("provider_down", title=method.label),
        page.say("provider_down_text", title=method.label),
        status=502,
        back=to_sign_in(page.say),
    )


def _refused(page: PageRequest, words: str) -> Response:
    return page.note(page.say("sign_in_refused"), words, status=403, back=to_sign_in(page.say))


def _words_of(page: PageRequest, refusal: Refused) -> str:
    """What a refusal says, in the person's language."""
    if isinstance(refusal, NotRecognized):
        return page.say(refusal.reason, **refusal.arguments)
    return page.say.refusal(refusal)
