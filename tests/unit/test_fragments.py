"""Fragments: kept until they are made of something else, and while there is room."""

import random
from functools import partial

import pytest

from tertulia.model.nouns import NOUNS
from tertulia.model.users import User
from tertulia.state.tables import Shards, Table
from tertulia.wire.http.fragments import Fragments, Part, array, body_of, runs


def stretches_of(*user_ids: int) -> Shards[User]:
    stretches = Shards(Table[User](next(noun for noun in NOUNS if noun.table == "users")))
    for user_id in user_ids:
        stretches.table.put(user(user_id))
    return stretches


def user(user_id: int, name: str = "x") -> User:
    return User(id=user_id, address=f"{user_id}@example.com", full_name=name)


def test_a_fragment_is_made_anew_only_of_something_else() -> None:
    fragments, made = Fragments(), []

    def make() -> bytes:
        made.append(1)
        return b"1"

    first = fragments.get("a", 1, make)
    assert fragments.get("a", 1, make) is first
    assert fragments.get("a", 2, make) is not first
    assert len(made) == 2


def test_what_was_not_asked_for_longest_goes_first() -> None:
    fragments = Fragments(room=10_000)
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


def test_what_has_no_room_is_answered_all_the_same() -> None:
    fragments = Fragments(room=100)
    assert fragments.get("a", 0, lambda: bytes(5000)).content == bytes(5000)
    assert fragments.get("b", 0, lambda: b"1").content == b"1"


@pytest.mark.parametrize("seed", range(30))
def test_runs_have_every_record_once_and_of_its_kind(seed: int) -> None:
    rng = random.Random(seed)
    ids = rng.sample(range(1, 1000), rng.randint(0, 500))
    stretches = stretches_of(*ids)
    odd = {one: rng.choice("ab") for one in rng.sample(ids, rng.randint(0, len(ids)))}
    found = runs(stretches, "u", odd)
    told = [(one, run.kind) for run in found for one in run.ids]
    assert told == [(one, odd.get(one, "u")) for one in sorted(ids)]
    for run in found:
        assert all(run.first <= one < run.first + run.size for one in run.ids)


def test_one_change_is_of_one_stretch() -> None:
    stretches = stretches_of(1, 2, 300, 301, 700)
    table = stretches.table
    before = {run.first: run.version for run in runs(stretches, "", {})}
    table.put(user(300, "y"))
    table.put(user(1000))
    table.remove(700)
    after = {run.first: run.version for run in runs(stretches, "", {})}
    assert {first for first in after if after[first] != before.get(first)} == {256, 896}
    assert set(before) - set(after) == {640}


def test_viewers_share_what_they_see_alike() -> None:
    stretches = stretches_of(*range(1, 1001))
    one = {run[:2] for run in runs(stretches, "u", {10: "own"})}
    other = {run[:2] for run in runs(stretches, "u", {900: "own"})}
    assert len(one) == len(other) <= 8 + 7
    assert len(one & other) >= 6


def test_a_list_of_nothing_is_a_list() -> None:
    nothing = Fragments().get("a", 0, bytes)
    empty: tuple[list[Part], ...] = ([], [b""], [nothing, b""])
    for parts in empty:
        body, _ = body_of(array(parts).parts, None)
        assert body == b"[]"
    body, _ = body_of(array([nothing, b"1,2", nothing, b"3"]).parts, None)
    assert body == b"[1,2,3]"
