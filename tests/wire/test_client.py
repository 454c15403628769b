"""The web client's page and files."""

import re
from importlib import resources

import httpx
import pytest

from tests.browsers import signed_in
from tests.support import Organization

pytestmark = pytest.mark.skipif(
    not resources.files("tertulia").joinpath("web", "index.html").is_file(),
    reason="the web client is not built: make client",
)


async def _page(org: Organization) -> httpx.Response:
    browser = await signed_in(org)
    return await browser.http.get("/")


async def _script(org: Organization) -> str:
    page = (await _page(org)).text
    found = re.search(r'src="(/app/assets/[^"]+\.js)"', page)
    assert found, page
    return found[1]


async def test_the_page_may_run_no_script_but_the_clients_own(shared: Organization) -> None:
    policy = (await _page(shared)).headers["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy


async def test_a_file_may_be_kept_forever_because_its_name_tells_its_content(
    shared: Organization,
) -> None:
    reply = await shared.http.get(await _script(shared))

    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/javascript")
    assert "immutable" in reply.headers["cache-control"]


async def test_a_file_is_sent_packed_to_those_who_can_unpack_it(shared: Organization) -> None:
    address = await _script(shared)
    packed = await shared.http.get(address, headers={"Accept-Encoding": "gzip"})
    plain = await shared.http.get(address, headers={"Accept-Encoding": "identity"})

    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 2
    assert packed.content == plain.content


@pytest.mark.parametrize("name", ["nothing.js", "..%2Findex.html", "%00", "index.html"])
async def test_there_are_no_other_files(shared: Organization, name: str) -> None:
    assert (await shared.http.get(f"/app/assets/{name}")).status_code == 404


async def test_the_first_load_of_script_is_small(shared: Organization) -> None:
    """The budget of the project: 150 KB, packed."""
    page = (await _page(shared)).text
    addresses = re.findall(r'(?:src|href)="(/app/assets/[^"]+\.js)"', page)
    sizes = [
        int(
            (await shared.http.get(one, headers={"Accept-Encoding": "gzip"})).headers[
                "content-length"
            ]
        )
        for one in addresses
    ]

    assert 0 < sum(sizes) <= 150_000
