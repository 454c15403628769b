"""Gzip data that is joined from parts."""

import gzip
import random

import pytest

from tertulia.wire.http.compression import accepts, compressed, joined

SIZES = (0, 1, 5, 127, 128, 129, 3000, 8191, 8192, 70_000)


@pytest.mark.parametrize("seed", range(40))
def test_parts_of_any_size_and_kind_make_one_gzip_file(seed: int) -> None:
    rng = random.Random(seed)
    contents = [rng.randbytes(rng.choice(SIZES)) for _ in range(rng.randint(0, 12))]
    contents += [b"the same again and again " * 900] * rng.randint(0, 2)
    rng.shuffle(contents)
    parts = [compressed(content) if rng.random() < 0.6 else content for content in contents]
    assert gzip.decompress(joined(parts)) == b"".join(contents)


def test_no_part_is_compressed_with_data_of_another() -> None:
    secret = b"the secret is 5f1c9e0a77b2" * 20
    for guess in (b"the secret is 5f1c9e0a77b2", b"the secret is 000000000000"):
        told = len(joined([secret, guess * 10])) - len(joined([secret]))
        assert told == len(joined([guess * 10])) - len(joined([]))


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [
        ("gzip", True),
        ("gzip, deflate", True),
        ("GZip;q=1.0", True),
        ("br;q=1, gzip; q=0.5", True),
        ("*", True),
        ("", False),
        ("identity", False),
        ("deflate, br", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000, *", False),
        ("*, gzip;q=0", False),
        ("*;q=0, gzip", True),
        ("identity, *;q=0", False),
    ],
)
def test_accept_encoding_selects_gzip(accepted: str, takes: bool) -> None:
    assert accepts("gzip", accepted) is takes
