"""Signing in people whom a sign-in method has proven to be who they are."""

from starlette.responses import Response

from tertulia.domain.accounts import identities
from tertulia.model.errors import Refused
from tertulia.model.identities import ProvenIdentity
from tertulia.service.sign_in_methods import SignInMethod
from tertulia.wire.http import sign_in
from tertulia.wire.pages.form_flow import PageRequest
from tertulia.wire.pages.sign_in_flow import SignInFlow, finish_sign_in


async def finish_proven(
    page: PageRequest, method: SignInMethod, proven: ProvenIdentity, flow: SignInFlow
) -> Response:
    """Sign the person in, with a new account if the method creates them, or raise Refused,
    which says why they can't be."""
    node = page.node
    try:
        user = await node.log.submit(
            None,
            identities.recognize,
            proven,
            method.rules,
            await node.vault.credential(0, None),
            node.config.mail_site,
            node.renderer.render,
        )
        return await finish_sign_in(page, user, method.name, flow)
    except Refused:
        sign_in.log_failed_sign_in(page.request, method.name)
        raise
