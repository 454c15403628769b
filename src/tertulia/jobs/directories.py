"""Following directories: people who are gone there are deactivated here."""

import asyncio
import logging
from typing import Final

from tertulia.domain.accounts import identities, provisioning
from tertulia.domain.accounts.users import first_owner
from tertulia.identity.ldap import DirectoryDown, LdapPerson, people
from tertulia.jobs.leases import JobLease
from tertulia.jobs.supervisor import Job
from tertulia.model.errors import LastOfKind
from tertulia.service.node import Node
from tertulia.service.sign_in_methods import LdapMethod
from tertulia.state.decision import CommandContext

logger = logging.getLogger("tertulia.jobs")

FEW: Final = 10
"""This many people, or half of them, can be gone. More than that looks like a mistake."""


AT_ONCE: Final = 100
"""People who are compared without letting others use the event loop."""


class TooManyGone(Exception):
    """The directory lacks most people, so its settings are probably wrong."""


class DirectoryFailed(Exception):
    """The directory can't be read."""


def directory_sync(node: Node, method: LdapMethod) -> Job:
    """Deactivate people who are gone from the directory or disabled there, and give the others the
    roles and groups that they have there."""
    lease = JobLease(f"directory {method.name}")
    seconds = method.sync_minutes * 60.0

    async def sync() -> None:
        try:
            found = await asyncio.to_thread(people, method)
        except DirectoryDown as error:
            raise DirectoryFailed(error.reason) from None
        await follow(node, method, found)

    async def once() -> float:
        await lease.hold(node.log, sync)
        return seconds

    return Job(f"directory {method.name}", once)


async def follow(node: Node, method: LdapMethod, people: list[LdapPerson]) -> None:
    """Apply what the directory says about people who have signed in with it. Raises TooManyGone."""
    state = node.state
    present = {person.identity.subject: person.identity for person in people if person.is_active}
    linked = {
        identity.user_id: identity.subject
        for identity in state.identities
        if identity.method == method.name and state.users[identity.user_id].is_active
    }
    gone = [user_id for user_id, known_by in linked.items() if known_by not in present]
    if len(gone) > max(FEW, len(linked) // 2):
        raise TooManyGone(
            f"{len(gone)} of {len(linked)} people of {method.name} aren't in the directory. Nobody"
            " was deactivated. Check base and people, or deactivate them yourself."
        )
    for user_id in gone:
        fields = {"user": user_id, "method": method.name}
        try:
            await node.log.submit(first_owner(node.state), provisioning.remove, user_id)
        except LastOfKind:
            logger.warning("the last owner is gone from the directory", extra={"fields": fields})
        else:
            logger.info("deactivated a person who left the directory", extra={"fields": fields})
    for number, (user_id, known_by) in enumerate(linked.items()):
        if number % AT_ONCE == 0:
            await asyncio.sleep(0)  # Comparing everyone takes long in a large organization.
        if known_by not in present:
            continue
        groups, user = present[known_by].groups, node.state.users[user_id]
        context = CommandContext(node.state, node.clock(), None)
        if identities.synced(context, user, groups, method.rules):
            await node.log.submit(None, identities.sync, user_id, groups, method.rules)
