"""Links of accounts to identity providers. Changes to them don't create events."""

from typing import Annotated

from msgspec import Struct

from tertulia.domain import permissions
from tertulia.domain.accounts import identities
from tertulia.domain.accounts.provisioning import USER_NAME
from tertulia.wire.http import sign_in
from tertulia.wire.http.parameters import Doc, IntPath
from tertulia.wire.http.routing import ApiResponse, Call


class IdentityObject(Struct, kw_only=True):
    """A link to an identity provider or a directory."""

    id: int
    method: Annotated[str, Doc("The name of the sign-in method.")]
    title: Annotated[
        str, Doc("The method's display name, or `method` if it's no longer configured.")
    ]
    linked_at: int


class IdentitiesResponse(ApiResponse, kw_only=True):
    """The links, oldest first."""

    identities: list[IdentityObject]


async def get_own_identities(call: Call) -> IdentitiesResponse:
    """Get the identity providers that your account is linked to. This endpoint is a Tertulia
    extension."""
    return _of(call, call.user.id)


async def get_user_identities(call: Call, user_id: IntPath) -> IdentitiesResponse:
    """Get the identity providers that an account is linked to. Requires an owner. This endpoint is
    a Tertulia extension."""
    permissions.require_owner(call.state, call.user)
    return _of(call, permissions.visible_user(call.state, call.user, user_id).id)


def _of(call: Call, user_id: int) -> IdentitiesResponse:
    titles = {method.name: method.label for method in call.node.config.sign_in}
    return IdentitiesResponse(
        identities=[
            IdentityObject(
                id=identity.id,
                method=identity.method,
                title=titles.get(identity.method, identity.method),
                linked_at=identity.linked_at,
            )
            for identity in call.state.identities.of_user[user_id]
            if identity.method != USER_NAME
        ]
    )


async def unlink_own_identity(call: Call, identity_id: IntPath) -> None:
    """Unlink your account from an identity provider, if you can sign in another way. The next
    sign-in there finds your account by its email address. This endpoint is a Tertulia extension."""
    sign_in.require_confirmed(call)
    methods = frozenset(method.name for method in call.node.config.sign_in)
    await call.submit(identities.unlink_own, identity_id, methods)


async def unlink_user_identities(call: Call, user_id: IntPath) -> None:
    """Unlink an account from all identity providers, for example because its owner's account there
    was recreated. The next sign-in there finds the account by its email address. Requires an owner.
    This endpoint is a Tertulia extension."""
    sign_in.require_confirmed(call)
    await call.submit(identities.unlink_managed, user_id)
