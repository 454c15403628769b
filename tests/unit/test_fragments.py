"""Cached fragments of responses: valid until their sources change, and while there is room."""

import random
from functools import partial

import pytest

from tertulia.model.nouns import NOUNS
from tertulia.model.users import User
from tertulia.state.shards import Shards
from tertulia.state.tables import Table
from tertulia.wire.api.shard_ranges import shard_ranges
from tertulia.wire.http.responses import Fragments, Part, body_of, json_array


def shards_of(*user_ids: int) -> Shards[User]:
    shards = Shards(Table[User](next(noun for noun in NOUNS if noun.table == "users")))
    for user_id in user_ids:
        shards.table.put(user(user_id))
    return shards


def user(user_id: int, name: str = "x") -> User:
    return User(id=user_id, address=f"{user_id}@example.com", full_name=name)


def test_a_fragment_is_rebuilt_only_when_its_source_changes() -> None:
    fragments, made = Fragments(), []

    def make() -> bytes:
        made.append(1)
        return b"1"

    first = fragments.get("a", 1, make)
    assert fragments.get("a", 1, make) is first
    assert fragments.get("a", 2, make) is not first
    assert len(made) == 2


def test_the_least_recently_used_fragment_is_evicted() -> None:
    fragments = Fragments(max_bytes=10_000)
    for name in "abc":
        fragments.get(name, 0, lambda: bytes(2000))
    fragments.get("a", 0, lambda: b"")
    fragments.get("d", 0, lambda: bytes(2000))
    made: list[str] = []

    def make(name: str) -> bytes:
        made.append(name)
        return b""

    for name in "acdb":
        fragments.get(name, 0, partial(make, name))
    assert made == ["b"]


def test_a_fragment_too_large_for_the_cache_is_returned() -> None:
    fragments = Fragments(max_bytes=100)
    assert fragments.get("a", 0, lambda: bytes(5000)).content == bytes(5000)
    assert fragments.get("b", 0, lambda: b"1").content == b"1"


@pytest.mark.parametrize("seed", range(30))
def test_ranges_have_every_record_once_and_of_its_kind(seed: int) -> None:
    rng = random.Random(seed)
    ids = rng.sample(range(1, 1000), rng.randint(0, 500))
    shards = shards_of(*ids)
    odd = {one: rng.choice("ab") for one in rng.sample(ids, rng.randint(0, len(ids)))}
    found = shard_ranges(shards, "u", odd)
    told = [(one, one_range.kind) for one_range in found for one in one_range.ids]
    assert told == [(one, odd.get(one, "u")) for one in sorted(ids)]
    for one_range in found:
        assert all(
            one_range.first <= one < one_range.first + one_range.size for one in one_range.ids
        )


def test_a_change_affects_one_shard() -> None:
    shards = shards_of(1, 2, 300, 301, 700)
    table = shards.table
    before = {one_range.first: one_range.version for one_range in shard_ranges(shards, "", {})}
    table.put(user(300, "y"))
    table.put(user(1000))
    table.remove(700)
    after = {one_range.first: one_range.version for one_range in shard_ranges(shards, "", {})}
    assert {first for first in after if after[first] != before.get(first)} == {256, 896}
    assert set(before) - set(after) == {640}


def test_viewers_share_fragments_of_what_they_see_alike() -> None:
    shards = shards_of(*range(1, 1001))
    one = {one_range[:2] for one_range in shard_ranges(shards, "u", {10: "own"})}
    other = {one_range[:2] for one_range in shard_ranges(shards, "u", {900: "own"})}
    assert len(one) == len(other) <= 8 + 7
    assert len(one & other) >= 6


def test_an_empty_list_is_a_list() -> None:
    nothing = Fragments().get("a", 0, bytes)
    empty: tuple[list[Part], ...] = ([], [b""], [nothing, b""])
    for parts in empty:
        body, _ = body_of(json_array(parts).parts, None)
        assert body == b"[]"
    body, _ = body_of(json_array([nothing, b"1,2", nothing, b"3"]).parts, None)
    assert body == b"[1,2,3]"
