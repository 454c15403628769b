"""Signing in people that a sign-in method has identified."""

import logging

from starlette.responses import Response

from tertulia.domain.accounts.identities import NotRecognized
from tertulia.identity.provider import ProviderDown
from tertulia.model.errors import Refused
from tertulia.model.identities import ProvenIdentity
from tertulia.service.sign_in_methods import SignInMethod
from tertulia.wire.http import sign_in
from tertulia.wire.pages.form_flow import PageRequest, to_sign_in
from tertulia.wire.pages.sign_in_flow import SignInFlow
from tertulia.wire.pages.sign_in_steps import finish_sign_in

logger = logging.getLogger("tertulia.sign_in")


async def finish_proven(
    page: PageRequest, method: SignInMethod, proven: ProvenIdentity, flow: SignInFlow
) -> Response:
    """Sign the person in, or show a page with the reason why they can't sign in."""
    try:
        user = await sign_in.recognized(page.node, proven, method, flow.invitation)
        return await finish_sign_in(page, user, method.name, flow)
    except Refused as refusal:
        sign_in.log_failed_sign_in(page.request, method.name)
        return _refused(page, _words_of(page, refusal))


def not_proven(page: PageRequest, method: SignInMethod, reason: str, sender: str = "") -> Response:
    """Log why nobody is signed in, and show a page without the reason, because it may help an
    attacker."""
    fields = {"method": method.name, "reason": reason, **({"from": sender} if sender else {})}
    logger.warning("refused a sign-in", extra={"fields": fields})
    sign_in.log_failed_sign_in(page.request, method.name)
    return _refused(page, page.say("provider_refused", title=method.label))


def provider_down(page: PageRequest, method: SignInMethod, error: ProviderDown) -> Response:
    """Log why the provider isn't available, and show a page about it."""
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
    """Return a refusal's message in the person's language."""
    if isinstance(refusal, NotRecognized):
        return page.say(refusal.reason, **refusal.arguments)
    return page.say.refusal(refusal)
