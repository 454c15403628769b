"""Password strength."""

import time

import pytest

from tertulia.demo import PASSWORD as DEMONSTRATION
from tertulia.domain.accounts.signup import PasswordRules
from tertulia.model.errors import Refused
from tertulia.service.credentials import Vault
from tests.shortcuts import QuickHasher

RULES = PasswordRules(min_length=8, min_guesses=1_000_000)
OWN = ("ann.miller@example.com", "Ann Miller", "Café Central")


@pytest.mark.parametrize(
    "text",
    [
        "password",
        "12345678",
        "ｐａｓｓｗｏｒｄ１２３",  # noqa: RUF001 (that is the point)
        "passw0rd1",
        "qwertyuiop",
        "letmein!!",
        "aaaaaaaaaaaaaaaa",
        "ann.miller@example.com",
        "Ann Miller",
        "annmiller1",
        "millerann",
        "cafécentral",
        "example.com",
        "01.01.1990",
    ],
)
def test_passwords_that_are_guessed_immediately_are_refused(text: str) -> None:
    with pytest.raises(Refused, match="too easy to guess"):
        RULES.require(text, OWN)


LONG = (
    "bernadette.longname@example-company.com",
    "Bernadette Longname-Featherstone",
    "The Society of Letters and Digits",
)


@pytest.mark.parametrize("min_guesses", [0, 1_000_000])
@pytest.mark.parametrize(
    "text",
    [
        *LONG,
        LONG[0].upper(),
        LONG[0] + "1",
        "bernadette.longname",
        "Bernadette_Longname 99",
        "bernadettelongnamefeatherstone",
        "2026 The Society of Letters & and Digits!",
    ],
)
def test_a_person_s_known_data_is_no_password(text: str, min_guesses: int) -> None:
    with pytest.raises(Refused, match="too easy to guess"):
        PasswordRules(min_length=1, min_guesses=min_guesses).require(text, LONG)


@pytest.mark.parametrize(
    "text", ["correct horse", "a few good words", DEMONSTRATION, "vT4#kq9!x", "x" * 7 + "mein hund"]
)
def test_a_password_that_is_hard_to_guess_is_accepted(text: str) -> None:
    assert RULES.require(text, OWN) == text


@pytest.mark.parametrize(("length", "good"), [(7, False), (8, True), (100, True), (101, False)])
def test_a_password_has_a_minimum_and_maximum_length(length: int, good: bool) -> None:
    text = ("kT4#q9!vZx" * 11)[:length]
    if good:
        assert RULES.require(text) == text
    else:
        with pytest.raises(Refused, match="8 to 100 characters"):
            RULES.require(text)


def test_an_installation_may_accept_any_password() -> None:
    assert PasswordRules(min_length=1, min_guesses=0).require("a", OWN) == "a"


@pytest.mark.parametrize("made", ["4@8({[<63&9#!1/|0$5+7%2z", "4@a8b({[<c63e&9g#!1i/|lo0$5s+7t%2z"])
def test_a_slow_password_is_checked_as_fast_as_others(made: str) -> None:
    # Checking all of it would take seconds (or minutes if it were longer). Its start takes a
    # fraction.
    began = time.process_time()
    RULES.require((made * 10)[:100], [made * 100] * 5)
    assert time.process_time() - began < 10


def test_password_hashing_takes_as_long_as_recommended() -> None:
    """In a separate program, because tests use fast hashes."""
    vault = Vault("secret")
    assert isinstance(vault._hasher, QuickHasher)
    assert vault._hasher.asked_for == (2, 19 * 1024, 1)
    vault.close()
