"""Whether mails arrive, tried by who runs the place."""

from typing import Annotated, Final

from msgspec import Meta

from tertulia.domain import permissions
from tertulia.model.errors import Refused
from tertulia.service.mail_trials import tried
from tertulia.wire.api.resources.server import NoParams
from tertulia.wire.http.call import Call
from tertulia.wire.http.routing import Answer

TRIALS: Final = 5
TRIAL_SECONDS: Final = 300.0
"""An owner may try so often, and as often again in so long."""


class TriedMail(Answer, kw_only=True):
    """What became of a test mail."""

    outcome: Annotated[
        str,
        Meta(
            description="`sent`: the mail server took it; `not_set_up`: the server has no"
            " smtp_host, and nothing was sent; `unreachable`: the mail server could not be reached,"
            " or took too long; `not_encrypted`: not with the encryption that is set, or without a"
            " certificate that is trusted; `not_signed_in`: it does not take the name and the"
            " password; `refused`: it does not take the mail."
        ),
    ]
    to: Annotated[str, Meta(description="The caller's address.")]
    reply: Annotated[
        str,
        Meta(
            description="What the mail server answered where it refused something, without"
            " addresses and names of hosts; else empty."
        ),
    ]


async def try_mail(call: Call, params: NoParams) -> TriedMail:
    """Send a test mail to the caller's own address, and say what became of it, within 30 seconds;
    for owners. Not of the reference's interface: this server's."""
    permissions.require_owner(call.state, call.user)
    if call.user.is_bot:
        raise Refused("Bots don't receive email.")
    to = call.user.address
    if not call.node.config.smtp_host:
        return TriedMail(outcome="not_set_up", to=to, reply="")
    call.node.limits.limiters.limiter("test mails", TRIALS, TRIAL_SECONDS).require(call.user.id)
    trial = await tried(call.node, to)
    outcome = "sent" if trial.trouble is None else trial.trouble.value
    return TriedMail(outcome=outcome, to=to, reply=trial.reply)
