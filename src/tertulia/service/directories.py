"""Giving accounts what an LDAP directory says about their people."""

import hashlib
import logging

from tertulia.domain.accounts import provisioning
from tertulia.domain.accounts.provisioning import DirectoryPicture
from tertulia.model.errors import Refused, Unavailable
from tertulia.model.identities import Identity, ProvenIdentity, RecognitionRules
from tertulia.service.files import pictures
from tertulia.service.node import Node
from tertulia.state.decision import CommandContext

logger = logging.getLogger("tertulia.sign_in")


async def follow(
    node: Node,
    identity: Identity,
    proven: ProvenIdentity,
    rules: RecognitionRules,
    picture: bytes = b"",
) -> None:
    """Give the account of a linked person the name, the role, and the groups that the directory
    has, and its picture, if it isn't empty. A picture that can't be used is logged."""
    context = CommandContext(node.state, node.clock(), None)
    facts = (identity.id, proven, rules)
    if provisioning.follow(context, *facts).changes:
        await node.log.submit(None, provisioning.follow, *facts)
    digest = hashlib.sha256(picture).hexdigest()
    if not picture or not provisioning.wants_picture(node.state, identity, digest):
        return
    try:
        file = await pictures.keep_scaled_avatar(node.files, picture)
        async with pictures.avatar_deleted_on_failure(node.files, file):
            stored = DirectoryPicture(digest=digest, file=file)
            unused = await node.log.submit(None, provisioning.follow, *facts, stored)
        await pictures.delete_avatar(node.files, unused)
    except (Refused, Unavailable) as error:
        fields = {"user": identity.user_id, "reason": str(error)}
        logger.warning("a picture of the directory can't be used", extra={"fields": fields})
