"""Security headers in every response."""

from tests.browsers import signed_in_browser
from tests.pictures import picture
from tests.support import Organization

PATHS = (
    "/",
    "/api",
    "/api/style.css",
    "/api/v1/events",
    "/api/v1/messages",
    "/api/v1/nothing",
    "/api/v1/openapi.json",
    "/api/v1/server_settings",
    "/api/v1/users/me",
    "/app/",
    "/app/assets/nothing.js",
    "/worker.js",
    "/avatar/ann@example.com",
    "/external_content/x/00",
    "/health",
    "/join/nothing",
    "/login",
    "/logout",
    "/manifest.webmanifest",
    "/nothing",
    "/ready",
    "/reset",
    "/reset/nothing",
    "/static/emoji.json",
    "/static/icon.svg",
    "/static/page.css",
    "/static/person.svg",
    "/thumbnail/user_uploads/1/x/100x75.webp",
    "/user_uploads/1/nothing",
)


def policy_of(text: str) -> dict[str, str]:
    """The directives of a content security policy."""
    return dict((f"{part.strip()} ").split(" ", 1) for part in text.split(";"))


async def test_no_response_can_be_framed_or_sniffed(
    org: Organization,
) -> None:
    browser, ann = await signed_in_browser(org), org["ann"]
    uploaded = await ann.upload(content=picture(20, 20), name="a.png")

    async def post_picture(path: str) -> None:
        auth, files = (ann.email, ann.api_key), {"f": ("a.png", picture(64, 64))}
        response = await org.http.post(f"/api/v1{path}", auth=auth, files=files)
        assert response.status_code == 200

    await post_picture("/realm/emoji/tea")
    emoji = (await ann.get("/realm/emoji")).ok["emoji"]
    await post_picture("/users/me/avatar")
    avatar = (await ann.get("/users/me")).ok["avatar_url"]
    own = [f"/user_uploads/{uploaded}", *(one["source_url"] for one in emoji.values()), avatar]
    for path in own:
        assert (await browser.http.get(path)).status_code == 200
    for path in (*PATHS, *own):
        for asking in (browser.http, org.http):
            for method in ("GET", "OPTIONS", "PUT"):
                answer = await asking.request(method, path)
                said = (method, path, answer.status_code, answer.headers)
                assert answer.headers.get_list("x-content-type-options") == ["nosniff"], said
                [policy] = map(policy_of, answer.headers.get_list("content-security-policy"))
                assert policy["default-src"].strip() == "'none'", said
                assert policy["base-uri"].strip() == "'none'", said
                assert policy["frame-ancestors"].strip() in {"'none'", "'self'"}, said
