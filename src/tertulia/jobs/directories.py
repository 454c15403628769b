"""Syncing with directories: accounts get people's data from a directory, and people who were
removed there are deactivated here."""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tertulia.domain.accounts import provisioning
from tertulia.domain.accounts.users import first_owner
from tertulia.identity.ldap import DirectoryDown, LdapPerson, people, pictures
from tertulia.jobs.leases import JobLease
from tertulia.jobs.supervisor import Job
from tertulia.model.errors import LastOfKind, Refused
from tertulia.model.identities import Identity
from tertulia.service import directories
from tertulia.service.directory_methods import LdapMethod
from tertulia.service.node import Node

logger = logging.getLogger("tertulia.jobs")

FEW: Final = 10
"""The most people, or half of them, that can be gone. More than that looks like a mistake."""
BATCH_SIZE: Final = 100
"""The number of people who are compared before other tasks of the event loop run."""
PICTURE_BATCH: Final = 20
PICTURES: Final = 1000
"""The most pictures that are read in one round."""
ROUND_SECONDS: Final = 3600.0
MORE_SECONDS: Final = 60.0
"""Seconds until the next round, if there are more pictures."""


class TooManyGone(Exception):
    """Most people are missing from the directory, so its settings are probably wrong."""


class DirectoryFailed(Exception):
    """The directory can't be read."""


def directory_syncs(node: Node) -> Sequence[Job]:
    """Return the jobs for the directories that are synced regularly."""
    return [
        directory_sync(node, method)
        for method in node.config.sign_in
        if isinstance(method, LdapMethod) and method.sync_minutes
    ]


def directory_sync(node: Node, method: LdapMethod) -> Job:
    """Return the job that syncs with a directory: it deactivates people who were removed or
    disabled there, reactivates those who are back, and updates the names, pictures, roles, and
    groups of the others."""
    lease = JobLease(f"directory {method.name}")
    follower = DirectoryFollower(node, method)

    async def once() -> float:
        await lease.hold(node.log, follower.once)
        return MORE_SECONDS if follower.has_more else method.sync_minutes * 60.0

    return Job(f"directory {method.name}", once, round_seconds=ROUND_SECONDS)


class DirectoryFollower:
    """Syncs with one directory."""

    def __init__(self, node: Node, method: LdapMethod) -> None:
        self._node = node
        self._method = method
        self._looked_at: dict[str, str] = {}
        """The modification times of the entries whose pictures were read, by the people's IDs."""
        self.has_more = False
        """Whether there are pictures that the last round didn't read."""

    async def once(self) -> None:
        """Read the directory, and apply its data. Raise DirectoryFailed, TooManyGone."""
        try:
            persons = await asyncio.to_thread(people, self._method)
            await self.apply(persons)
        except DirectoryDown as error:
            raise DirectoryFailed(error.reason) from None

    async def apply(self, people: Iterable[LdapPerson]) -> None:
        """Apply the directory's data about people who have signed in with it. Raise TooManyGone,
        DirectoryDown."""
        present = {person.identity.subject: person for person in people if person.is_active}
        await self._deactivate(present)
        await self._reactivate(present)
        linked = list(self._linked())
        for number, identity in enumerate(linked):
            if number % BATCH_SIZE == 0:
                await asyncio.sleep(0)  # Comparing everyone takes long in a large organization.
            if (person := present.get(identity.subject)) is not None:
                await directories.follow(self._node, identity, person.identity, self._method.rules)
        await self._take_pictures(linked, present)

    def _linked(self) -> Iterable[Identity]:
        """Yield the links of active accounts."""
        state = self._node.state
        for identity in state.identities:
            if identity.method == self._method.name and state.users[identity.user_id].is_active:
                yield identity

    async def _deactivate(self, present: Mapping[str, LdapPerson]) -> None:
        node, name = self._node, self._method.name
        linked = list(self._linked())
        gone = [identity for identity in linked if identity.subject not in present]
        if len(gone) > max(FEW, len(linked) // 2):
            raise TooManyGone(
                f"{len(gone)} of {len(linked)} people of {name} aren't in the directory. Nobody"
                " was deactivated. Check base and people, or deactivate them yourself."
            )
        for identity in gone:
            fields = {"user": identity.user_id, "method": name}
            try:
                await node.log.submit(
                    first_owner(node.state), provisioning.deactivate_departed, identity.id
                )
            except LastOfKind:
                logger.warning(
                    "the last owner is gone from the directory", extra={"fields": fields}
                )
            else:
                logger.info("deactivated a person who left the directory", extra={"fields": fields})

    async def _reactivate(self, present: Mapping[str, LdapPerson]) -> None:
        node, name = self._node, self._method.name
        back = [
            identity
            for identity in node.state.identities
            if identity.is_gone and identity.method == name and identity.subject in present
        ]
        for identity in back:
            fields = {"user": identity.user_id, "method": name}
            key = node.vault.new_key()
            try:
                await node.log.submit(
                    first_owner(node.state), provisioning.reactivate_returned, identity.id, key
                )
            except Refused as error:
                fields["reason"] = str(error)
                logger.warning("a person can't be reactivated", extra={"fields": fields})
            else:
                logger.info("reactivated a person who is back", extra={"fields": fields})

    async def _take_pictures(
        self, linked: Iterable[Identity], present: Mapping[str, LdapPerson]
    ) -> None:
        """Read the pictures of entries that changed, in parts, because they are large."""
        node, method = self._node, self._method
        wanted = [
            (identity, person)
            for identity in linked
            if method.picture_attribute
            and (person := present.get(identity.subject)) is not None
            and self._looked_at.get(identity.subject) != person.changed_at
            and provisioning.wants_picture(node.state, identity)
        ]
        self.has_more = len(wanted) > PICTURES
        for begin in range(0, min(len(wanted), PICTURES), PICTURE_BATCH):
            part = wanted[begin : begin + PICTURE_BATCH]
            dns = [person.dn for _, person in part]
            contents = await asyncio.to_thread(pictures, method, dns)
            for (identity, person), content in zip(part, contents, strict=True):
                await directories.follow(node, identity, person.identity, method.rules, content)
                self._looked_at[identity.subject] = person.changed_at
