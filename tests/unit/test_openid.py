"""The proofs that an OpenID provider's responses must have."""

import hashlib
import hmac
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

from tertulia.app.sign_in_tables import methods_from
from tertulia.identity.github import Github
from tertulia.identity.openid import (
    CLOCK_SKEW,
    LOGOUT_EVENT,
    REFETCH_SECONDS,
    OpenidProvider,
    settings_of,
)
from tertulia.identity.provider import (
    LOGOUT_TOKEN_SECONDS,
    AuthorizationRequest,
    NotProven,
    ProviderDown,
    ProviderWeb,
)
from tertulia.service.sign_in_methods import SignInMethod

ISSUER = "https://id.example.com"
NOW = int(time.time())
KEY = RSAKey.generate_key(2048, {"kid": "k1", "use": "sig", "alg": "RS256"})
OTHER_KEY = RSAKey.generate_key(2048, {"kid": "k2", "use": "sig", "alg": "RS256"})
REQUEST = AuthorizationRequest(
    state="state", nonce="nonce", verifier="verifier", redirect_url="https://chat.example.com/back"
)
METADATA: dict[str, Any] = {
    "issuer": ISSUER,
    "authorization_endpoint": f"{ISSUER}/auth",
    "token_endpoint": f"{ISSUER}/token",
    "jwks_uri": f"{ISSUER}/jwks",
    "userinfo_endpoint": f"{ISSUER}/me",
    "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
}
CLAIMS: dict[str, Any] = {
    "iss": ISSUER,
    "aud": "tertulia",
    "sub": "7",
    "iat": NOW,
    "exp": NOW + 300,
    "nonce": "nonce",
    "email": "eve@example.com",
    "email_verified": True,
    "name": "Eve",
    "sid": "s1",
}


def method(**more: Any) -> SignInMethod:
    known = {"name": "company", "kind": "oidc", "issuer": ISSUER, "client_id": "tertulia"}
    return methods_from([known | more])[0]


def signed(claims: Mapping[str, Any], key: Any = KEY, **header: str) -> str:
    return jwt.encode({"alg": "RS256", "kid": "k1", **header}, dict(claims), key)


class FakeWeb(ProviderWeb):
    """A provider's responses by URL. `asked` are the requests."""

    def __init__(self, **answers: Any) -> None:
        self.title = "Company account"
        self.answers: dict[str, Any] = {
            "/.well-known/openid-configuration": METADATA,
            "/jwks": KeySet([KEY]).as_dict(),
            **answers,
        }
        self.asked: list[tuple[str, Mapping[str, str], Mapping[str, str]]] = []

    def _answer(self, url: str, form: Mapping[str, str], headers: Mapping[str, str]) -> Any:
        self.asked.append((url, form, headers))
        path = url.removeprefix(ISSUER)
        if path not in self.answers:
            raise self.down(f"nothing at {url}")
        return self.answers[path]

    async def get(self, url: str, headers: Mapping[str, str] | None = None) -> Any:
        return self._answer(url, {}, headers or {})

    async def post(
        self, url: str, form: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> Any:
        return self._answer(url, form, headers or {})


def provider(web: FakeWeb, **more: Any) -> OpenidProvider:
    return OpenidProvider(settings_of(method(**more)), web, lambda: NOW)


def with_token(token: str, **answers: Any) -> FakeWeb:
    return FakeWeb(**{"/token": {"id_token": token, "access_token": "at"}, **answers})


async def test_a_signed_token_proves_who_someone_is() -> None:
    web = with_token(signed(CLAIMS))
    there = await provider(web, client_secret="s:/").signed_in(REQUEST, {"code": "c"})
    assert there.session == "s1"
    proven = there.identity
    assert (proven.subject, proven.address, proven.is_address_verified) == (
        f"{ISSUER} 7",
        "eve@example.com",
        True,
    )
    assert proven.groups is None
    (sent,) = [(form, headers) for url, form, headers in web.asked if url.endswith("/token")]
    assert sent[0]["code_verifier"] == "verifier"
    assert sent[1]["Authorization"] == "Basic dGVydHVsaWE6cyUzQSUyRg=="  # tertulia:s%3A%2F
    url = await provider(web).url(REQUEST)
    challenge = urlsafe_b64encode(hashlib.sha256(b"verifier").digest()).rstrip(b"=").decode()
    assert f"code_challenge={challenge}&code_challenge_method=S256" in url


def _unsigned() -> str:
    head = urlsafe_b64encode(b'{"alg":"none","kid":"k1"}').rstrip(b"=").decode()
    return f"{head}.{signed(CLAIMS).split('.')[1]}."


def _signed_with_the_public_key() -> str:
    head = urlsafe_b64encode(b'{"alg":"HS256","kid":"k1"}').rstrip(b"=").decode()
    said = f"{head}.{signed(CLAIMS).split('.')[1]}"
    proof = hmac.digest(KEY.as_pem(private=False), said.encode(), "sha256")
    return f"{said}.{urlsafe_b64encode(proof).rstrip(b'=').decode()}"


@pytest.mark.parametrize(
    "token",
    [
        pytest.param("", id="empty"),
        pytest.param("a.b.c", id="malformed"),
        pytest.param(_unsigned(), id="alg none"),
        pytest.param(_signed_with_the_public_key(), id="signed with the public key as a secret"),
        pytest.param(signed(CLAIMS, OTHER_KEY), id="another key under a known ID"),
        pytest.param(signed(CLAIMS)[:-8] + "AAAAAAAA", id="another signature"),
        pytest.param(signed(CLAIMS | {"iss": "https://evil.example"}), id="another issuer"),
        pytest.param(signed(CLAIMS | {"aud": "other"}), id="another audience"),
        pytest.param(signed(CLAIMS | {"aud": ["tertulia", "other"]}), id="shared, without azp"),
        pytest.param(signed(CLAIMS | {"azp": "other"}), id="another party"),
        pytest.param(signed(CLAIMS | {"nonce": "other"}), id="another nonce"),
        pytest.param(signed(CLAIMS | {"exp": NOW - CLOCK_SKEW - 1}), id="expired"),
        pytest.param(signed(CLAIMS | {"iat": NOW + CLOCK_SKEW + 1}), id="of the future"),
        pytest.param(signed(CLAIMS | {"nbf": NOW + CLOCK_SKEW + 1}), id="not valid yet"),
        *(
            pytest.param(
                signed({key: value for key, value in CLAIMS.items() if key != name}),
                id=f"without {name}",
            )
            for name in ("iss", "aud", "sub", "exp", "iat", "nonce")
        ),
    ],
)
async def test_other_tokens_prove_nothing(token: str) -> None:
    with pytest.raises(NotProven):
        await provider(with_token(token)).signed_in(REQUEST, {"code": "c"})


async def test_the_clocks_may_differ_by_a_minute() -> None:
    claims = CLAIMS | {"iat": NOW + CLOCK_SKEW, "exp": NOW - CLOCK_SKEW + 1}
    await provider(with_token(signed(claims))).signed_in(REQUEST, {"code": "c"})
    claims = CLAIMS | {"aud": ["tertulia", "other"], "azp": "tertulia"}
    await provider(with_token(signed(claims))).signed_in(REQUEST, {"code": "c"})


async def test_the_issuer_in_the_answer_must_be_this_one() -> None:
    web = with_token(signed(CLAIMS))
    with pytest.raises(NotProven, match="issuer"):
        await provider(web).signed_in(REQUEST, {"code": "c", "iss": "https://evil.example"})
    names_itself = METADATA | {"authorization_response_iss_parameter_supported": True}
    web.answers["/.well-known/openid-configuration"] = names_itself
    with pytest.raises(NotProven, match="doesn't name its issuer"):
        await provider(web).signed_in(REQUEST, {"code": "c"})
    assert not [one for one in web.asked if one[0].endswith("/token")]


async def test_an_unknown_key_is_looked_for_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr("tertulia.identity.openid.time.monotonic", lambda: now[0])
    web = with_token(signed(CLAIMS))
    tested = provider(web)

    def fetched() -> int:
        return sum(url.endswith("/jwks") for url, _, _ in web.asked)

    await tested.signed_in(REQUEST, {"code": "c"})
    assert fetched() == 1
    web.answers["/token"] = {"id_token": signed(CLAIMS, OTHER_KEY, kid="k2")}
    for _ in range(5):
        with pytest.raises(NotProven):
            await tested.signed_in(REQUEST, {"code": "c"})
    assert fetched() == 1
    now[0] += REFETCH_SECONDS
    web.answers["/jwks"] = KeySet([KEY, OTHER_KEY]).as_dict()
    await tested.signed_in(REQUEST, {"code": "c"})
    assert fetched() == 2


async def test_the_user_info_adds_what_the_token_lacks() -> None:
    bare = {k: v for k, v in CLAIMS.items() if k not in {"email", "email_verified", "name"}}
    info = {"sub": "7", "email": "eve@example.com", "email_verified": "true", "name": "Eve"}
    web = with_token(signed(bare), **{"/me": info})
    proven = (await provider(web).signed_in(REQUEST, {"code": "c"})).identity
    assert (proven.address, proven.is_address_verified) == ("eve@example.com", True)
    assert web.asked[-1][2] == {"Authorization": "Bearer at"}
    web.answers["/me"] = info | {"sub": "8"}
    with pytest.raises(NotProven, match="someone else"):
        await provider(web).signed_in(REQUEST, {"code": "c"})


async def test_the_user_info_says_whether_the_tokens_address_is_verified() -> None:
    bare = {k: v for k, v in CLAIMS.items() if k != "email_verified"}
    for address, is_verified in (("eve@example.com", True), ("other@example.com", False)):
        info = {"sub": "7", "email": address, "email_verified": True}
        web = with_token(signed(bare), **{"/me": info})
        proven = (await provider(web).signed_in(REQUEST, {"code": "c"})).identity
        assert (proven.address, proven.is_address_verified) == ("eve@example.com", is_verified)


async def test_groups_come_from_the_configured_claim() -> None:
    claims = CLAIMS | {"groups": ["a", 1, "b"], "realm_access": {"roles": ["c"]}, "one": "d"}
    for name, expected in (
        ("groups", {"a", "b"}),
        ("realm_access.roles", {"c"}),
        ("one", {"d"}),
        ("nothing", None),
    ):
        web = with_token(signed(claims))
        there = await provider(web, groups_claim=name).signed_in(REQUEST, {"code": "c"})
        assert there.identity.groups == (None if expected is None else frozenset(expected))


async def test_a_provider_describes_itself_rightly_or_is_not_used() -> None:
    described: tuple[Any, ...] = (
        METADATA | {"issuer": "https://evil.example"},
        METADATA | {"token_endpoint": "http://id.example.com/token"},
        {"issuer": ISSUER},
        [],
    )
    for wrong in described:
        web = FakeWeb(**{"/.well-known/openid-configuration": wrong})
        with pytest.raises(ProviderDown):
            await provider(web).url(REQUEST)
    with pytest.raises(ProviderDown):
        await provider(FakeWeb(**{"/jwks": {"keys": []}})).check()
    assert await provider(FakeWeb()).check() == f"{ISSUER} responds, and has 1 key"


async def test_a_provider_that_is_down_is_not_asked_by_everyone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    web = FakeWeb()
    del web.answers["/.well-known/openid-configuration"]
    tested = provider(web)
    for _ in range(10):
        with pytest.raises(ProviderDown):
            await tested.url(REQUEST)
    assert len(web.asked) == 1


async def test_keys_that_do_not_come_are_not_asked_for_by_everyone() -> None:
    """Anyone can send logout tokens."""
    web = FakeWeb()
    del web.answers["/jwks"]
    tested = provider(web)
    for _ in range(10):
        with pytest.raises(ProviderDown):
            await tested.logged_out("a.b.c")
    assert len(web.asked) == 2


# Logout tokens

LOGOUT: dict[str, Any] = {
    "iss": ISSUER,
    "aud": "tertulia",
    "iat": NOW,
    "exp": NOW + 60,
    "jti": "j1",
    "sub": "7",
    "sid": "s1",
    "events": {LOGOUT_EVENT: {}},
}


async def test_a_logout_token_says_who_signed_out() -> None:
    there = await provider(FakeWeb()).logged_out(signed(LOGOUT, typ="logout+jwt"))
    assert (there.token_id, there.subject, there.session) == ("j1", f"{ISSUER} 7", "s1")


@pytest.mark.parametrize(
    "change",
    [
        {"nonce": "nonce"},
        {"events": {}},
        {"events": None},
        {"aud": "other"},
        {"iss": "https://evil.example"},
        {"exp": NOW - CLOCK_SKEW - 1},
        # The token could be sent again after its ID is forgotten.
        {"iat": NOW - LOGOUT_TOKEN_SECONDS, "exp": NOW + 60},
        {"jti": ""},
        {"sub": "", "sid": ""},
    ],
)
async def test_other_logout_tokens_count_nothing(change: dict[str, Any]) -> None:
    with pytest.raises(NotProven):
        await provider(FakeWeb()).logged_out(signed(LOGOUT | change))


# Other kinds of providers


async def test_google_accounts_may_be_of_one_domain_only() -> None:
    google = methods_from(
        [{"name": "g", "kind": "google", "client_id": "tertulia", "domain": "example.com"}]
    )[0]
    settings = settings_of(google)
    assert (settings.issuer, settings.parameters) == (
        "https://accounts.google.com",
        {"hd": "example.com"},
    )
    ours = METADATA | {"issuer": "https://accounts.google.com"}
    address = "https://accounts.google.com/.well-known/openid-configuration"
    claims = CLAIMS | {"iss": "https://accounts.google.com"}
    for hd, is_in in (("example.com", True), ("evil.example", False), (None, False)):
        web = with_token(signed(claims | ({"hd": hd} if hd else {})), **{address: ours})
        tested = OpenidProvider(settings, web, lambda: NOW)
        if is_in:
            await tested.signed_in(REQUEST, {"code": "c"})
        else:
            with pytest.raises(NotProven, match="domain"):
                await tested.signed_in(REQUEST, {"code": "c"})


async def test_apples_secret_is_signed_and_its_name_comes_beside_the_token(tmp_path: Any) -> None:
    key = ECKey.generate_key("P-256")
    file = tmp_path / "AuthKey.p8"
    file.write_bytes(key.as_pem(private=True))
    declared = {"name": "apple", "kind": "apple", "client_id": "com.example.chat"}
    apple = methods_from([declared | {"team_id": "TEAM", "key_id": "KEY", "key_file": str(file)}])[
        0
    ]
    settings = settings_of(apple)
    token = jwt.decode(settings.secret(NOW), key, algorithms=["ES256"])
    assert token.header["kid"] == "KEY"
    assert (token.claims["iss"], token.claims["sub"]) == ("TEAM", "com.example.chat")
    issuer = "https://appleid.apple.com"
    claims = CLAIMS | {"iss": issuer, "aud": "com.example.chat", "email_verified": "true"}
    del claims["name"]
    ours = METADATA | {"issuer": issuer, "userinfo_endpoint": ""}
    web = with_token(signed(claims), **{f"{issuer}/.well-known/openid-configuration": ours})
    tested = OpenidProvider(settings, web, lambda: NOW)
    assert "response_mode=form_post" in await tested.url(REQUEST)
    user = '{"name": {"firstName": "Eve", "lastName": "Adams"}}'
    proven = (await tested.signed_in(REQUEST, {"code": "c", "user": user})).identity
    assert (proven.full_name, proven.is_address_verified) == ("Eve Adams", True)
    assert (await tested.signed_in(REQUEST, {"code": "c", "user": "["})).identity.full_name == ""


GITHUB: dict[str, Any] = {
    "https://github.com/login/oauth/access_token": {"access_token": "at"},
    "https://api.github.com/user": {"id": 7, "login": "eve", "name": None, "avatar_url": "x"},
    "https://api.github.com/user/emails": [
        {"email": "old@example.com", "primary": False, "verified": True},
        {"email": "eve@example.com", "primary": True, "verified": True},
    ],
    "https://api.github.com/user/orgs?per_page=100": [{"login": "Acme"}],
    "https://api.github.com/user/teams?per_page=100": [
        {"slug": "cooks", "organization": {"login": "Acme"}}
    ],
}


async def test_github_names_people_by_id_and_primary_verified_address() -> None:
    declared = {"name": "gh", "kind": "github", "client_id": "a", "client_secret": "b"}
    (plain,) = methods_from([declared])
    web = FakeWeb(**GITHUB)
    there = await Github(plain, web).signed_in(REQUEST, {"code": "c"})  # type: ignore[arg-type]
    proven = there.identity
    assert (proven.subject, proven.address, proven.full_name, proven.groups) == (
        "https://github.com 7",
        "eve@example.com",
        "eve",
        None,
    )
    (team,) = methods_from([declared | {"organizations": ["acme"]}])
    there = await Github(team, web).signed_in(REQUEST, {"code": "c"})  # type: ignore[arg-type]
    assert there.identity.groups == frozenset({"acme", "acme/cooks"})
    web.answers["https://api.github.com/user/orgs?per_page=100"] = []
    web.answers["https://api.github.com/user/teams?per_page=100"] = []
    with pytest.raises(NotProven, match="allowed organization"):
        await Github(team, web).signed_in(REQUEST, {"code": "c"})  # type: ignore[arg-type]
    web.answers["https://api.github.com/user/emails"][1]["verified"] = False
    there = await Github(plain, web).signed_in(REQUEST, {"code": "c"})  # type: ignore[arg-type]
    assert (there.identity.address, there.identity.is_address_verified) == ("", False)
