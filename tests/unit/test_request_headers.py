"""Raw request headers."""

from tertulia.wire.http.request_head import first_of_each, header

HEADERS = [(b"host", b"a"), (b"cookie", b"b=\xe9"), (b"host", b"c")]


def test_the_first_of_several_equal_headers_counts() -> None:
    assert header(HEADERS, b"host") == "a"
    assert first_of_each(HEADERS)[b"host"] == b"a"


def test_a_missing_header_is_none() -> None:
    assert header(HEADERS, b"Host") is None
    assert header([], b"host") is None


def test_a_value_is_latin_1() -> None:
    assert header(HEADERS, b"cookie") == "b=é"
