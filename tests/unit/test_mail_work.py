"""Parsing emails from email programs, with the worker's functions called directly."""

from email.message import EmailMessage
from pathlib import Path

import pytest

from tertulia.service.mail_in import mail_work
from tertulia.service.mail_in.receiving import ReceivedMail

HEAD = "From: Ben <ben@example.com>\r\nSubject: =?utf-8?q?Re:_caf=C3=A9?=\r\nMessage-ID: <a@b>\r\n"
PLAIN = HEAD + "Content-Type: text/plain; charset=utf-8\r\n\r\n"
HTML = HEAD + "Content-Type: text/html; charset=utf-8\r\n\r\n"
GMAIL = (
    '<div dir="ltr">Yes, <b>both</b> of them<br></div><br><div class="gmail_quote"><div dir="ltr"'
    ' class="gmail_attr">On Mon, Nov 2, 2026 Ann wrote:<br></div><blockquote class="gmail_quote">'
    "Cups?</blockquote></div>"
)
OUTLOOK = (
    "<html><head><style>p{color:red}</style></head><body><div>At five.</div>"
    '<div id="Signature">Ben, Buyer</div><div id="appendonsend"></div><hr>'
    '<div id="divRplyFwdMsg"><b>From:</b> Ann</div><div>When?</div></body></html>'
)


def read(tmp_path: Path, mail: str | bytes, **how: bool) -> ReceivedMail:
    place = tmp_path / "mail"
    place.write_bytes(mail if isinstance(mail, bytes) else mail.encode())
    wanted = {"quotes": False, "footers": False, "prefer_html": False} | how
    return mail_work.read(str(place), **wanted)


@pytest.mark.parametrize(
    ("mail", "text"),
    [
        pytest.param(PLAIN + "Fine by me.\r\n", "Fine by me.", id="plain"),
        pytest.param(
            PLAIN + "Yes:\r\n\r\n    four\r\n\r\nOn Mon, Nov 2, 2026 at 10:00 AM Ann"
            " <ann@example.com> wrote:\r\n> Cups?\r\n",
            "Yes:\n\n    four",
            id="answer-above-keeps-indentation",
        ),
        pytest.param(
            PLAIN + "Ja.\r\n\r\nAm 2. Nov. 2026 um 10:00 schrieb Ann <ann@example.com>:\r\n\r\n"
            "> Tassen?\r\n",
            "Ja.",
            id="german",
        ),
        pytest.param(
            PLAIN + "Sí.\r\n\r\nEl lun, 2 nov 2026 a las 10:00, Ann (<ann@example.com>)"
            " escribió:\r\n\r\n> ¿Tazas?\r\n",
            "Sí.",
            id="spanish",
        ),
        pytest.param(
            PLAIN + "> Cups?\r\n\r\nFour.\r\n\r\n> Plates?\r\n\r\nNone.\r\n",
            "> Cups?\n\nFour.\n\n> Plates?\n\nNone.",
            id="answered-in-between",
        ),
        pytest.param(PLAIN + "Done.\r\n\r\n-- \r\nBen\r\nBuyer\r\n", "Done.", id="signature"),
        pytest.param(
            PLAIN + "We need:\r\n- cups\r\n- plates\r\n", "We need:\n- cups\n- plates", id="list"
        ),
        pytest.param(HTML + GMAIL, "Yes, **both** of them", id="gmail"),
        pytest.param(HTML + OUTLOOK, "At five.", id="outlook"),
        pytest.param(
            HTML + OUTLOOK.replace("p{color:red}", "p{color:red}\n" * 5000),
            "At five.",
            id="long-styles",
        ),
        pytest.param(
            HTML + '<p>See <a href="https://example.com/x">this</a></p><script>x()</script>',
            "See [this](https://example.com/x)",
            id="html-only",
        ),
        pytest.param(
            (HEAD + "Content-Type: text/plain; charset=iso-8859-1\r\n\r\n").encode()
            + "Grüße aus Köln".encode("latin-1"),
            "Grüße aus Köln",
            id="latin-1",
        ),
        pytest.param(
            (HEAD + "Content-Type: text/plain; charset=klingon\r\n\r\n").encode()
            + "naïve".encode("latin-1"),
            "naïve",
            id="unknown-charset",
        ),
        pytest.param(
            HEAD + "Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\nHalf",
            "Half",
            id="cut-off",
        ),
        pytest.param(HEAD + "\r\n" * 200_000 + "At last\r\n", "", id="lines-without-end"),
        pytest.param(HEAD + "\r\n" * 30_000 + "At last\r\n", "At last", id="very-many-lines"),
        pytest.param(PLAIN.replace("utf-8", '"utf-8\0"') + "Hi", "Hi", id="no-charset"),
        pytest.param(PLAIN.replace("utf-8", "unicode_escape") + "h\\ud800i", "h?i", id="half"),
        pytest.param(b"\xff\xfe no mail at all", "ÿþ no mail at all", id="no-mail"),
    ],
)
def test_the_text_of_an_email(tmp_path: Path, mail: str | bytes, text: str) -> None:
    assert read(tmp_path, mail).text == text


def test_headers_are_read_and_quotes_and_footers_kept_if_wanted(tmp_path: Path) -> None:
    found = read(tmp_path, PLAIN + "Hi\r\n")
    assert (found.title, found.sender) == ("Re: café", "Ben <ben@example.com>")
    assert (found.message_id, found.is_automatic) == ("<a@b>", False)
    whole = (
        "Yes\n\nOn Mon, Nov 2, 2026 at 10:00 AM Ann <ann@example.com> wrote:\n> Cups?\n\n-- \nBen"
    )
    shown = read(tmp_path, PLAIN + whole.replace("\n", "\r\n"), quotes=True, footers=True)
    assert shown.text == whole.replace("-- ", "--")
    assert "Cups?" in read(tmp_path, HTML + GMAIL, quotes=True).text


@pytest.mark.parametrize(
    ("header", "automatic", "answered"),
    [
        ("Auto-Submitted: auto-replied", True, True),
        ("Auto-Submitted: auto-generated", True, False),
        ("Auto-Submitted: no", False, False),
        ("Precedence: list", True, False),
        ("X-Autoreply: yes", True, True),
        ("Content-Type: multipart/report; boundary=x", True, True),
    ],
)
def test_automatic_emails_are_recognized(
    tmp_path: Path, header: str, automatic: bool, answered: bool
) -> None:
    found = read(tmp_path, f"{header}\r\n{HEAD}\r\nI am away.\r\n")
    assert (found.is_automatic, found.is_auto_reply) == (automatic, answered)


def test_attachments_are_extracted_in_order(tmp_path: Path) -> None:
    mail, inner = EmailMessage(), EmailMessage()
    inner["Subject"] = "Before"
    inner.set_content("Older")
    mail.set_content("With files")
    mail.add_alternative("<p>With <i>files</i></p>", subtype="html")
    mail.add_attachment(b"\x00\x01", maintype="application", subtype="zip", filename="añ/o.zip")
    mail.add_attachment("a,b", subtype="csv", filename="t.csv")
    mail.add_attachment(inner)
    found = read(tmp_path, mail.as_bytes())
    assert found.text == "With files"
    assert read(tmp_path, mail.as_bytes(), prefer_html=True).text == "With *files*"
    assert [file.name for file in found.files] == ["añ/o.zip", "t.csv", "message.eml"]
    places = [tmp_path / name for name in "abc"]
    mail_work.unpack(str(tmp_path / "mail"), [str(place) for place in places])
    assert places[0].read_bytes() == b"\x00\x01"
    assert [len(place.read_bytes()) for place in places] == [file.size for file in found.files]
    assert b"Older" in places[2].read_bytes()


def test_an_email_of_deeply_nested_parts_is_handled(tmp_path: Path) -> None:
    boundary = "Content-Type: multipart/mixed; boundary=x\r\n\r\n"
    deep = HEAD + boundary + f"--x\r\n{boundary}" * 1500  # Deeper than Python's recursion limit.
    wide = HEAD + boundary + "--x\r\n\r\na\r\n" * 1500
    assert read(tmp_path, deep).files == ()
    assert len(read(tmp_path, wide).text) < 1000
