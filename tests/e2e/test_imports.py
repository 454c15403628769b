"""An import into an organization whose server runs, with a client that is connected."""

import asyncio

from tertulia.service.config import Config
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, listening, ok
from tests.e2e.test_workers import crew
from tests.imports.invented import Invented, imported

__all__ = ["crew"]


def import_beside(site: Site) -> None:
    server = site.server
    config = Config(data_dir=str(server.data_dir), database_url=server.database_url)
    asyncio.run(imported(config, Invented(60, keeps_ids=False)))


def test_connected_clients_load_imported_messages(crew: Site) -> None:
    """The Zulip client of someone who was matched by address."""
    with listening(crew.server, crew.ann, crew.ben) as (ann, ben):
        import_beside(crew)
        # Channels and people arrive as events.
        ann.hears(lambda e: e["type"] == "stream" and e["op"] == "create")
        ann.hears(lambda e: e["type"] == "realm_user" and e["op"] == "add")
        # At the end, queues are replaced.
        for one in (ann, ben):
            one.registers_again()
        with client_of(crew.ben, crew.server) as client:
            found = ok(
                client.get_messages(
                    {"anchor": "newest", "num_before": 100, "num_after": 0, "narrow": []}
                )
            )["messages"]
            senders = {one["sender_full_name"].lower() for one in found}
            assert "ann" in senders
            sent = ok(
                client.send_message(
                    {"type": "stream", "to": "general", "topic": "after", "content": "here"}
                )
            )
        ann.hears_message(sent["id"])
