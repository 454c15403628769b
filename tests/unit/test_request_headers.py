"""Headers of a request, as they came."""

from tertulia.wire.http.request_head import first_of_each, header

HEADERS = [(b"host", b"a"), (b"cookie", b"b=\xe9"), (b"host", b"c")]


def test_of_several_headers_of_a_name_the_first_counts() -> None:
    assert header(HEADERS, b"host") == "a"
    assert first_of_each(HEADERS)[b"host"] == b"a"


def test_a_header_that_is_not_there_is_none() -> None:
    assert header(HEADERS, b"Host") is None
    assert header([], b"host") is None


def test_a_value_is_latin_1() -> None:
    assert header(HEADERS, b"cookie") == "b=é"
