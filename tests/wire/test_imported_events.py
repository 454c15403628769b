"""The events of an import that connected clients get while it runs."""

import pytest
from msgspec.structs import replace

from tertulia.imports.importer import Importer
from tertulia.imports.progress import Progress
from tertulia.imports.records import SourceGroup, SourceOrganization
from tertulia.imports.report import ImportReport
from tertulia.imports.target import ImportTarget
from tests.imports.invented import Invented
from tests.reference_client import WAYS, ReferenceClient, differences
from tests.support import Organization

pytestmark = pytest.mark.anyio


class WithGroup(Invented):
    """The invented organization, with a deactivated person in a group."""

    def organization(self, report: ImportReport) -> SourceOrganization:
        cooks = SourceGroup(key=31, name="cooks", members=(12, 13))
        return replace(super().organization(report), groups=(cooks,))


class Stopped(Exception):
    pass


@pytest.mark.parametrize("way", WAYS)
async def test_events_of_imported_people_equal_a_later_snapshot(
    org: Organization, way: str
) -> None:
    def stop(progress: Progress) -> None:
        if progress.step == "messages":  # Clients load everything again when it ends.
            raise Stopped

    viewers = ("ann", "gus", "robo")
    clients = [await ReferenceClient.begin(org[one], WAYS[way]) for one in viewers]
    node = org.node
    target = ImportTarget(node.log, node.vault, node.files, node.disk)
    importer = Importer(target, WithGroup(4), tell=stop)
    with pytest.raises(Stopped):
        await importer.run()
    kinds = {"users", "bots", "groups"}
    for viewer, client in zip(viewers, clients, strict=True):
        await client.catch_up()
        fresh = await ReferenceClient.begin(org[viewer], WAYS[way])
        held, shown = client.shown(), fresh.shown()
        assert kinds <= shown.keys()
        here = {kind: held[kind] for kind in kinds}
        assert not differences(here, {kind: shown[kind] for kind in kinds}), viewer
