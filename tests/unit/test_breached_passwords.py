"""Known passwords, looked up in a sorted file."""

import hashlib
from pathlib import Path

import pytest

from tertulia.model.errors import Refused
from tertulia.service.accounts import password_rules
from tertulia.service.breached_passwords import is_breached
from tertulia.service.config import Config


def hashed(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest().upper()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 200])
@pytest.mark.parametrize("ending", ["\n", "\r\n", ""])
def test_every_listed_password_is_found_and_no_other(
    tmp_path: Path, count: int, ending: str
) -> None:
    known = [f"secret {number}" for number in range(count)]
    lines = [f"{one}:{7 ** (number % 9)}" for number, one in enumerate(sorted(map(hashed, known)))]
    path = tmp_path / "known.txt"
    path.write_bytes((ending or "\n").join(lines).encode() + ending.encode())
    assert all(is_breached(path, one) for one in known)
    assert not any(is_breached(path, f"other {number}") for number in range(200))


def test_a_known_password_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "known.txt"
    path.write_text(hashed("correct horse battery") + ":3\n")
    rules = password_rules(Config(data_dir=str(tmp_path), breached_passwords_file=str(path)))
    with pytest.raises(Refused, match="stolen"):
        rules.require("correct horse battery")
    assert rules.require("another horse battery")
    # Without the file, people can still choose any password, and the operator is warned.
    path.unlink()
    assert rules.require("correct horse battery")
    assert "could not read breached_passwords_file" in caplog.text
