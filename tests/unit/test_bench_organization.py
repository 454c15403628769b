"""The benchmark's organizations: bulk inserts store the same as sent messages."""

from bench import archive, organization

from tertulia.app.founding import opened_log
from tertulia.service.config import Config
from tertulia.store.store import database_at

INDEXES = {
    "sqlite": "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
    " ORDER BY name",
    "postgresql": "SELECT indexname, replace(indexdef, current_schema(), '') FROM pg_indexes"
    " WHERE schemaname = current_schema() ORDER BY indexname",
}


async def test_an_archive_is_searchable_and_has_its_indexes(
    config: Config,
) -> None:
    made = await organization.create(config, people=20, channels=3)
    connection = database_at(config.data_path, config.database_url).connect(readonly=True)
    indexes = INDEXES[connection.dialect.name]
    before = connection.query(indexes)
    filled = archive.add_messages(config, made, 2_000)
    assert connection.query(indexes) == before
    assert connection.query("SELECT COUNT(*), MAX(id) FROM messages") == [(2_000, 2_000)]
    assert connection.query(connection.dialect.search_missing) == [(0,)]
    connection.close()
    assert filled.authorization == made.people[0]
    assert len(filled.by_id) == 100


async def test_an_organization_has_people_in_channels_of_the_given_sizes(config: Config) -> None:
    made = await organization.create(config, people=30, channels=3)
    async with opened_log(config, lambda _: None) as log:
        state = log.state
        assert len(made.people) == 30
        assert state.users[made.first_user_id].address == "p0@example.com"
        channels = {
            channel.name: len(list(state.subscribers(channel.id))) for channel in state.channels
        }
    sizes = {"channel 0": 30, "channel 1": 15, "channel 2": 10}
    assert channels == sizes | {"small": 10, "middle": 30, "large": 30}
