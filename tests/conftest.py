"""How the tests run, and the fixtures shared by all of them: databases and organizations."""

import gc
import logging
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tertulia.model.users import Role
from tertulia.service.config import Config
from tests import postgres, s3, selection, shortcuts
from tests.support import Newcomer, Organization, TestClock, as_worker, new_organization

_MEMORY = Path("/dev/shm")
_BY_DATABASE = {"database_url", "shared_database_url"}
"""Fixtures that run a test on each kind of database."""
_ENOUGH_MEMORY = 2 << 30
"""Ten times the memory that a whole run needs at a time, in bytes."""

shortcuts.take()
# Most objects live until the end, so traverse them for garbage less often.
gc.set_threshold(100_000, 20, 20)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick",
        action="store_true",
        help="leave out slow tests, and on PostgreSQL run what differs there and the first test of"
        " each other module (tests/selection.py)",
    )


def pytest_configure(config: pytest.Config) -> None:
    _keep_files_in_memory()
    if config.option.quick:
        os.environ.setdefault("HISTORIES", "0.25")


def _keep_files_in_memory() -> None:
    """Write temporary files to memory, unless TMPDIR is set."""
    if "TMPDIR" in os.environ or not os.access(_MEMORY, os.W_OK | os.X_OK):
        return
    runs_programs = not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
    if runs_programs and shutil.disk_usage(_MEMORY).free >= _ENOUGH_MEMORY:
        os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are cores, since many tests wait for a program or a time limit."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (cores or 1) + 2


_first_tests: dict[str, str] = {}
"""By module: the first test that runs on both databases."""


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """With `--quick`, don't even collect tests that don't run on PostgreSQL: half of them all."""
    function = metafunc.definition
    named = {mark.args[0] for mark in function.iter_markers("parametrize")}
    databases = _BY_DATABASE.intersection(metafunc.fixturenames) - named
    if not databases or not metafunc.config.option.quick:
        return
    module = function.nodeid.partition("::")[0]
    is_first = _first_tests.setdefault(module, function.nodeid) == function.nodeid
    if is_first or selection.is_in(module, selection.ON_POSTGRESQL):
        return
    for fixture in databases:
        function.add_marker(pytest.mark.parametrize(fixture, ["sqlite"], indirect=True))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.option.quick:
        slow = [item for item in items if item.get_closest_marker("slow")]
        items[:] = [item for item in items if not item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    items[:] = selection.arranged(items, processes)


def pytest_collection_finish() -> None:
    """Modules and tests live until the end, so keep the garbage collector from traversing them."""
    gc.freeze()


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    """Free objects by reference counting only, so that tests can measure memory."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    """The event loop that servers have."""
    return "asyncio", {"use_uvloop": find_spec("uvloop") is not None}


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A private PostgreSQL server. Skips where it isn't available."""
    with postgres.cluster() as url:
        if url is None:
            pytest.skip("no PostgreSQL: neither its wheel nor its programs are installed")
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of an empty database of each kind; "" for SQLite in the data directory."""
    yield from _database_url(request)


def _database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield ""
        return
    with postgres.schema(request.getfixturevalue("postgres_url")) as url:
        yield url


@pytest.fixture
def config(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> Config:
    """The configuration of a node on an empty database. With `several_nodes`, of a worker."""
    found = _config(tmp_path, database_url)
    if database_url or "several_nodes" not in request.fixturenames:
        return found
    return as_worker(found, request.getfixturevalue("several_nodes"))


@pytest.fixture
def several_nodes() -> Iterator[Path]:
    """For tests that open several nodes on one database. On SQLite they are workers of one server,
    and find each other in this directory."""
    with tempfile.TemporaryDirectory() as place:  # Addresses of sockets are short.
        yield Path(place)


def _config(directory: Path, database_url: str) -> Config:
    return Config(
        data_dir=str(directory / "data"),
        database_url=database_url,
        external_url="http://chat.test",
        rate_limits=False,
    )


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[s3.S3Server]:
    """An S3 server, shared by the process."""
    with s3.server(tmp_path_factory.mktemp("s3")) as running:
        yield running


@pytest.fixture
def bucket(s3_server: s3.S3Server) -> Iterator[s3.S3Server]:
    """The S3 server. Tests can make it fail (`tests/s3.py`)."""
    s3_server.trouble()
    s3_server.requests()
    yield s3_server
    s3_server.trouble()


@pytest.fixture
def clock() -> TestClock:
    """A clock that the test sets forward."""
    return TestClock()


@pytest.fixture
def no_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes run no jobs, whose commits come at any time: for tests that count or stop commits."""
    monkeypatch.setattr("tertulia.app.composition.jobs_of", lambda *_: ())


@pytest.fixture
def patient_writer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests wait for the writer however long it waits for the database: for tests that stop
    commits or reload the state."""
    monkeypatch.setattr("tertulia.log.health.BEGIN_SECONDS", 60)
    monkeypatch.setattr("tertulia.log.requests.BEGIN_SECONDS", 60)


@pytest.fixture
def no_logged_errors(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail if the server logged an error. Refused requests are not errors."""
    yield
    broken = [r for r in caplog.get_records("call") if r.levelno >= logging.ERROR or r.exc_info]
    assert broken == []


OTHERS = (
    Newcomer("ben"),
    Newcomer("cleo"),
    Newcomer("gus", Role.GUEST),
    Newcomer("robo", owner="ben"),
)
"""Members of `org` other than its owner."""


@pytest.fixture
async def org(config: Config) -> AsyncIterator[Organization]:
    """A new organization with `ann` (owner), `ben` and `cleo` (members), `gus` (guest), and `robo`
    (ben's bot). It has no channels."""
    async with new_organization(config, others=OTHERS) as organization:
        yield organization


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared_database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """`database_url`, shared by the module."""
    yield from _database_url(request)


@pytest.fixture(scope="module")
async def shared_org(
    shared_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Organization]:
    """`org`, shared by the module. To add channels or messages, write a module-scoped fixture."""
    config = _config(tmp_path_factory.mktemp("shared"), shared_database_url)
    async with new_organization(config, others=OTHERS) as organization:
        yield organization


@pytest.fixture
def readonly_org(shared_org: Organization) -> Iterator[Organization]:
    """`shared_org`, for requests that read or are refused. Fails if the test changes something."""
    before = shared_org.node.state.seq
    yield shared_org
    assert shared_org.node.state.seq == before, "the test changed the organization"


@pytest.fixture(scope="module")
async def sqlite_org(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Organization]:
    """An organization with `ann`, `ben`, and `robo` on SQLite, shared by the module: for requests
    that are answered without the database."""
    async with new_organization(_config(tmp_path_factory.mktemp("shared"), "")) as organization:
        await organization.add("ben")
        await organization.add("robo", owner="ben")
        yield organization
