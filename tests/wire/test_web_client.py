"""The web client's page and files."""

import re
from importlib import resources

import httpx
import msgspec
import pytest

from tertulia.model.changes import RealmChanged
from tertulia.service.config import Config
from tertulia.wire.http.responses import NOTHING
from tertulia.wire.pages.web_client import client_page
from tests.browsers import signed_in_browser
from tests.support import Organization, new_organization

pytestmark = pytest.mark.skipif(
    not resources.files("tertulia").joinpath("web", "index.html").is_file(),
    reason="the web client is not built: make client",
)


async def _page(org: Organization) -> httpx.Response:
    browser = await signed_in_browser(org)
    return await browser.http.get("/")


async def _script(org: Organization) -> str:
    page = (await _page(org)).text
    found = re.search(r'src="(/app/assets/[^"]+\.js)"', page)
    assert found, page
    return found[1]


async def test_the_page_may_run_only_the_client_s_script(sqlite_org: Organization) -> None:
    policy = (await _page(sqlite_org)).headers["content-security-policy"]

    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy


async def test_the_page_may_use_the_microphone_and_no_other_device(
    sqlite_org: Organization,
) -> None:
    policy = (await _page(sqlite_org)).headers["permissions-policy"]

    assert {"microphone=(self)", "camera=()", "geolocation=()"} <= set(policy.split(", "))


async def test_a_file_with_a_hash_in_its_name_is_cached_forever(
    sqlite_org: Organization,
) -> None:
    reply = await sqlite_org.http.get(await _script(sqlite_org))

    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/javascript")
    assert "immutable" in reply.headers["cache-control"]


async def test_a_file_is_sent_compressed_to_clients_that_accept_it(
    sqlite_org: Organization,
) -> None:
    address = await _script(sqlite_org)
    packed = await sqlite_org.http.get(address, headers={"Accept-Encoding": "gzip"})
    plain = await sqlite_org.http.get(address, headers={"Accept-Encoding": "identity"})

    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 2
    assert packed.content == plain.content
    both = await sqlite_org.http.get(address, headers={"Accept-Encoding": "gzip, deflate, br"})
    assert both.headers["content-encoding"] == "br"
    assert int(both.headers["content-length"]) < int(packed.headers["content-length"])
    assert (await sqlite_org.http.get(f"{address}.br")).status_code == 404


@pytest.mark.parametrize("name", ["nothing.js", "..%2Findex.html", "%00", "index.html"])
async def test_there_are_no_other_files(sqlite_org: Organization, name: str) -> None:
    assert (await sqlite_org.http.get(f"/app/assets/{name}")).status_code == 404


async def test_the_script_of_the_first_load_is_small(sqlite_org: Organization) -> None:
    """The budget: 150 KB, compressed."""
    page = (await _page(sqlite_org)).text
    addresses = re.findall(r'(?:src|href)="(/app/assets/[^"]+\.js)"', page)
    sizes = [
        int(
            (await sqlite_org.http.get(one, headers={"Accept-Encoding": "gzip"})).headers[
                "content-length"
            ]
        )
        for one in addresses
    ]

    assert 0 < sum(sizes) <= 150_000


async def test_the_page_is_the_same_for_everyone(sqlite_org: Organization) -> None:
    """The service worker caches it, so it must not be one person's page or the sign-in page."""
    assert (await sqlite_org.http.get("/app/")).text == (await _page(sqlite_org)).text


async def test_the_service_worker_is_revalidated_and_restricted_to_this_origin(
    sqlite_org: Organization,
) -> None:
    reply = await sqlite_org.http.get("/worker.js")

    assert reply.headers["content-type"].startswith("text/javascript")
    assert reply.headers["cache-control"] == "no-cache"
    policy = reply.headers["content-security-policy"]
    assert policy == f"{NOTHING}; connect-src 'self'"
    known = {"If-None-Match": reply.headers["etag"]}
    assert (await sqlite_org.http.get("/worker.js", headers=known)).status_code == 304


async def test_everything_the_service_worker_caches_exists(sqlite_org: Organization) -> None:
    script = (await sqlite_org.http.get("/worker.js")).text
    files = set(re.findall(r'"(/app/assets/[^"]+)"', script))

    assert await _script(sqlite_org) in files
    assert any(name.endswith(".css") for name in files)
    for name in files:
        assert (await sqlite_org.http.get(name)).status_code == 200, name
    assert "__FILES__" not in script


async def test_the_manifest_has_the_organization_s_name_and_existing_icons(
    sqlite_org: Organization,
) -> None:
    reply = await sqlite_org.http.get("/manifest.webmanifest")
    manifest = reply.json()

    assert reply.headers["content-type"] == "application/manifest+json"
    assert manifest["name"] == sqlite_org.node.state.realm.name
    assert {icon.get("purpose", "any") for icon in manifest["icons"]} == {"any", "maskable"}
    for icon in manifest["icons"]:
        found = await sqlite_org.http.get(icon["src"])
        assert found.headers["content-type"] == icon["type"]


async def test_the_manifest_s_colors_equal_the_page_s(sqlite_org: Organization) -> None:
    """They are defined in three places: the manifest, the page, and the design tokens."""
    manifest = (await sqlite_org.http.get("/manifest.webmanifest")).json()
    page = (await _page(sqlite_org)).text
    tokens = (await sqlite_org.http.get("/static/tokens.css")).text
    colours = dict(re.findall(r"--(paper|sunken): (light-dark\([^)]*\))", tokens))
    side = re.findall(r"#[0-9a-f]{6}", colours["sunken"])

    assert manifest["background_color"] in colours["paper"]
    assert manifest["theme_color"] == side[0]
    assert re.findall(r'name="theme-color" content="([^"]+)"', page) == side


async def test_without_an_account_the_page_is_served_if_something_is_web_public(
    org: Organization,
) -> None:
    async def answer() -> tuple[int, str | None]:
        found = await org.http.get("/", follow_redirects=False)
        return found.status_code, found.headers.get("location")

    door = (302, "/login")
    assert await answer() == door
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    assert await answer() == door
    square = await org.channel("square", "ann", is_web_public=True)
    assert await answer() == (200, None)
    (await org["ann"].patch(f"/streams/{square}", is_web_public=False)).ok
    assert await answer() == door


async def test_gif_search_needs_the_operator_s_key(config: Config) -> None:
    """The browser searches: signed-in people get the key, and the page's policy allows only that
    service."""
    policies = {
        key: client_page(msgspec.structs.replace(config, **{key: "k-1"})).headers[
            "content-security-policy"
        ]
        for key in ("giphy_api_key", "klipy_api_key")
    }
    assert "giphy" not in policies["klipy_api_key"]
    assert "connect-src 'self' https://api.klipy.com;" in policies["klipy_api_key"]
    assert "img-src 'self' data: blob: https://static.klipy.com;" in policies["klipy_api_key"]
    assert "connect-src 'self' https://api.giphy.com;" in policies["giphy_api_key"]
    assert " https://media3.giphy.com" in policies["giphy_api_key"]
    assert "klipy" not in policies["giphy_api_key"]
    assert "https:" not in client_page(config).headers["content-security-policy"]

    async with new_organization(msgspec.structs.replace(config, klipy_api_key="k-1")) as org:
        ann = org["ann"]
        keys = {"giphy_api_key": "", "klipy_api_key": "k-1", "tenor_api_key": ""}
        data = (await ann.register()).data
        assert {name: data[name] for name in keys} == keys
        (await ann.patch("/realm", gif_rating_policy=0)).ok
        assert (await ann.register()).data["klipy_api_key"] == ""
