"""Syncing accounts with an LDAP directory."""

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
    """Sync a linked person's account with the directory: name, address, role, groups, and the
    picture, if it isn't empty. A picture that can't be used is logged."""
    context = CommandContext(node.state, node.clock(), None)
    facts = (identity.id, proven, rules)
    if provisioning.sync_from_directory(context, *facts).changes:
        await node.log.submit(None, provisioning.sync_from_directory, *facts)
    digest = hashlib.sha256(picture).hexdigest()
    if not picture or not provisioning.wants_picture(node.state, identity, digest):
        return
    try:
        file = await pictures.keep_scaled_avatar(node.files, picture)
        async with pictures.avatar_deleted_on_failure(node.files, file):
            stored = DirectoryPicture(digest=digest, file=file)
            unused = await node.log.submit(None, provisioning.sync_from_directory, *facts, stored)
        await pictures.delete_avatar(node.files, unused)
    except (Refused, Unavailable) as error:
        fields = {"user": identity.user_id, "reason": str(error)}
        logger.warning("a picture of the directory can't be used", extra={"fields": fields})
