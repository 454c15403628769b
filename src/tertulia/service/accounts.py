"""Deactivating and deleting accounts, and the rules for passwords."""

import logging
from functools import partial
from pathlib import Path

import msgspec

from tertulia.domain import permissions
from tertulia.domain.accounts import deactivation, erasing, users
from tertulia.domain.accounts.signup import PasswordRules
from tertulia.domain.messages.deleting import DeletionScope
from tertulia.model.errors import Refused
from tertulia.service import deletions
from tertulia.service.breached_passwords import is_breached
from tertulia.service.config import Config
from tertulia.service.deletions import PendingDeletion
from tertulia.service.files.pictures import delete_avatar
from tertulia.service.messages import deleting
from tertulia.service.node import Caller, Node
from tertulia.store.bots import StorageChanged

logger = logging.getLogger("tertulia.accounts")


async def leave(
    caller: Caller,
    user_id: int,
    scope: DeletionScope,
    *,
    erased: bool,
    comment: str | None,
    files: bool = False,
) -> bool:
    """Deactivate an account and its bots, and delete their messages in `scope`. With `files`, also
    delete their files; with `erased`, also erase the person's data. With a `comment`, email the
    person.

    Return whether everything is deleted. If not, call this again, or a node continues after a
    minute; until then, the account isn't erased. Raise the errors of the verbs that it uses.
    """
    if erased and comment is not None:
        raise Refused("You can't send an email to someone whose address is also being deleted.")
    site = caller.node.config.mail_site
    if not scope and not files:
        if erased:
            await _erase(caller, user_id)
        else:
            await caller.submit(deactivation.deactivate, user_id, comment, site)
        return True
    permissions.require_administrator(caller.state, caller.user)
    caller.consider(users.check_managed, user_id)
    if caller.state.users[user_id].is_active:
        await caller.submit(deactivation.deactivate, user_id, comment, site)
    every = (caller.state.users[bot_id] for bot_id in caller.state.users.bots)
    bots = [bot.id for bot in every if bot.bot and bot.bot.owner_id == user_id]
    store = caller.node.store
    deletion = await deletions.found(store, user_id)
    if deletion is None or (deletion.places, deletion.files, deletion.erased) != (
        scope,
        files,
        erased,
    ):
        deletion = PendingDeletion(
            user_id=user_id, actor_id=caller.user.id, places=scope, files=files, erased=erased
        )

    async def worked(messages: int) -> None:
        deletion.messages += messages
        deletion.seen_at = caller.now
        await deletions.remember(store, deletion)

    await worked(0)
    complete = await deleting.delete_written(caller, [*bots, user_id], scope, worked)
    while files and await caller.submit(erasing.clear_files, user_id):
        pass
    if erased and complete and not caller.state.users[user_id].is_deleted:
        await _erase(caller, user_id)
    if complete:
        await deletions.forget(store, user_id)
    return complete


async def _erase(caller: Caller, user_id: int) -> None:
    node, host = caller.node, caller.node.config.address_host
    caller.consider(users.check_managed, user_id)
    if caller.state.users[user_id].is_active:
        await caller.submit(deactivation.deactivate, user_id)
    while await caller.submit(erasing.clear, user_id):
        pass
    for reservation in await node.partials.reservations(node.clock(), [user_id]):
        if (
            unfinished := await node.partials.load(reservation.user_id, reservation.key)
        ) is not None:
            await node.partials.delete(unfinished)
    kept = StorageChanged(user_id, gone=None)
    picture = await node.log.submit(caller.user.id, erasing.delete, user_id, host, notes=(kept,))
    await delete_avatar(node.files, picture)


def password_rules(config: Config) -> PasswordRules:
    """Return this server's rules for new passwords."""
    rules = PasswordRules(
        min_length=config.password_min_length, min_guesses=config.password_min_guesses
    )
    if not config.breached_passwords_file:
        return rules
    known = partial(_is_breached, Path(config.breached_passwords_file))
    return msgspec.structs.replace(rules, is_breached=known)


def _is_breached(path: Path, text: str) -> bool:
    try:
        return is_breached(path, text)
    except OSError as error:
        # People can still choose a password, and the operator is told.
        fields = {"file": str(path), "reason": error.strerror}
        logger.error("could not read breached_passwords_file", extra={"fields": fields})
        return False


async def good_password(node: Node, text: str, *personal: str) -> str:
    """Return the password, or raise Refused if the rules don't allow it. `personal` is what others
    know about the person."""
    known = (*personal, node.state.realm.name)
    return await node.vault.in_thread(password_rules(node.config).require, text, known)
