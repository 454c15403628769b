"""Parsing real-world and broken emails."""

import base64
import quopri
import random
from email.header import Header
from pathlib import Path

import pytest

from tertulia.service.mail_in import mail_work
from tertulia.service.mail_in.receiving import ReceivedMail

FROM = "From: Ben Baker <ben@example.com>\r\n"
HEAD = FROM + "Subject: Re: Cups\r\nMessage-ID: <a@b>\r\nMIME-Version: 1.0\r\n"
PLAIN = 'Content-Type: text/plain; charset="utf-8"\r\n'
HTML = 'Content-Type: text/html; charset="utf-8"\r\n'


def plain(text: str, head: str = HEAD) -> bytes:
    return f"{head}{PLAIN}Content-Transfer-Encoding: 8bit\r\n\r\n{crlf(text)}".encode()


def html(text: str, head: str = HEAD) -> bytes:
    encoded = quopri.encodestring(crlf(text).encode()).decode()
    return f"{head}{HTML}Content-Transfer-Encoding: quoted-printable\r\n\r\n{encoded}".encode()


def both(text: str, rich: str, head: str = HEAD) -> bytes:
    """As most programs write it: plain text, and the same as HTML."""
    return (
        f'{head}Content-Type: multipart/alternative; boundary="=_b"\r\n\r\n'
        f"This is a multi-part message in MIME format.\r\n--=_b\r\n{PLAIN}\r\n{crlf(text)}\r\n"
        f"--=_b\r\n{HTML}\r\n{crlf(rich)}\r\n--=_b--\r\n"
    ).encode()


def in_charset(name: str, text: str, codec: str = "") -> bytes:
    """In Base64, with a subject in the same charset."""
    content = text.encode(codec or name)
    subject = Header(text, codec or name).encode() if not codec else "x"
    head = (
        f"{FROM}Subject: {subject}\r\nContent-Type: text/plain; charset={name}\r\n"
        "Content-Transfer-Encoding: base64\r\n\r\n"
    )
    return head.encode() + base64.encodebytes(content).replace(b"\n", b"\r\n")


def crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def read(tmp_path: Path, mail: bytes, **how: bool) -> ReceivedMail:
    place = tmp_path / "mail"
    place.write_bytes(mail)
    wanted = {"quotes": False, "footers": False, "prefer_html": False} | how
    return mail_work.read(str(place), **wanted)


GMAIL_INTRODUCTION = "On Mon, Nov 2, 2026 at 10:00 AM Annemarie Longname via Casa Ñandú <\nnoreply@chat.example.com> wrote:\n\n"
OUTLOOK_HEADER = "From: Ann <ann@example.com>\nSent: Monday, November 2, 2026 10:00 AM\nTo: Ben <ben@example.com>\nSubject: Cups\n\n"
WORD = (
    '<html xmlns:o="urn:schemas-microsoft-com:office:office"><head><meta name=Generator'
    ' content="Microsoft Word 15 (filtered medium)"><style><!-- p.MsoNormal {margin:0cm} --></style>'
    '</head><body lang=EN-GB link="#0563C1"><div class=WordSection1><p class=MsoNormal>Twelve, and'
    " <b>plates</b>.<o:p></o:p></p><p class=MsoNormal><o:p>&nbsp;</o:p></p>"
    "<div><div style='border:none;border-top:solid #E1E1E1 1.0pt;padding:3.0pt 0cm 0cm 0cm'>"
    "<p class=MsoNormal><b>From:</b> Ann &lt;ann@example.com&gt; <br><b>Sent:</b> Monday<br>"
    "<b>Subject:</b> Cups<o:p></o:p></p></div></div><p class=MsoNormal>How many?<o:p></o:p></p>"
    "</div></body></html>"
)
APPLE = (
    '<html><head><meta http-equiv="content-type" content="text/html; charset=utf-8"></head><body'
    ' style="overflow-wrap: break-word; -webkit-nbsp-mode: space; line-break: after-white-space;">'
    'Twelve.<div><br><blockquote type="cite"><div>On 2 Nov 2026, at 10:00, Ann wrote:</div><br'
    ' class="Apple-interchange-newline"><div>How many?</div></blockquote></div><br></body></html>'
)
MOBILE = (
    '<div dir="auto">Twelve.<div dir="auto"><br></div></div><br><div class="gmail_quote'
    ' gmail_quote_container"><div dir="ltr" class="gmail_attr">On Mon, 2 Nov 2026, 10:00 Ann, &lt;'
    '<a href="mailto:ann@example.com">ann@example.com</a>&gt; wrote:<br></div><blockquote'
    ' class="gmail_quote" style="margin:0 0 0 .8ex;border-left:1px #ccc solid">How many?</blockquote>'
    "</div>"
)
OUTLOOK_MOBILE = (
    '<div dir="ltr">Twelve.</div><div id="ms-outlook-mobile-signature"><div>Get <a'
    ' href="https://aka.ms/o0ukef">Outlook for iOS</a></div></div><hr style="width:98%"'
    ' tabindex="-1"><div id="divRplyFwdMsg" dir="ltr"><b>From:</b> Ann<br></div><div>How many?</div>'
)
THUNDERBIRD = (
    '<p>Twelve.</p><div class="moz-cite-prefix">On 02.11.26 10:00, Ann wrote:<br></div><blockquote'
    ' type="cite" cite="mid:x@example.com">How many?</blockquote><pre class="moz-signature"'
    ' cols="72">-- \nBen</pre>'
)
NEWSLETTER = (
    '<html><head><title>News</title></head><body><div style="display:none;max-height:0">Read this in'
    ' your list of mails</div><table><tr><td><h1>News</h1><p>We have <a href="https://example.com/c">'
    'cups</a>.</p><img src="https://example.com/open.gif" width="1" height="1" alt=""></td></tr>'
    "</table></body></html>"
)
FLOWED = (
    f"{HEAD}Content-Type: text/plain; charset=utf-8; format=flowed\r\n\r\nTwelve cups, and as many \r\n"
    "plates as there are.\r\nNo forks.\r\n  two spaces, one of which is stuffed\r\n\r\n> How \r\n> many?\r\n-- \r\nBen\r\n"
).encode()
DELSP = (
    f"{HEAD}Content-Type: text/plain; charset=utf-8; format=flowed; delsp=yes\r\n\r\n茶碗 \r\n十二個\r\n"
).encode()

SHAPES = {
    "gmail, whose introduction is wrapped": (
        both("Twelve.\n\n" + GMAIL_INTRODUCTION + "> How many?\n", MOBILE),
        "Twelve.",
    ),
    "gmail on a phone, as HTML": (html(MOBILE), "Twelve."),
    "gmail in Japanese": (
        plain("十二個です。\n\n2026年11月2日(月) 10:00 Ann <ann@example.com>:\n\n> いくつ?\n"),
        "十二個です。",
    ),
    "gmail in Russian": (
        plain("Двенадцать.\n\nпн, 2 нояб. 2026 г. в 10:00, Ann <ann@example.com>:\n\n> Сколько?\n"),
        "Двенадцать.",
    ),
    "gmail in French": (
        plain("Douze.\n\nLe lun. 2 nov. 2026 à 10:00, Ann <ann@example.com> a écrit :\n\n> Combien ?\n"),
        "Douze.",
    ),
    "outlook for windows": (
        both("Twelve, and plates.\n\n" + OUTLOOK_HEADER + "How many?\n", WORD),
        "Twelve, and plates.",
    ),
    "outlook for windows, as HTML alone": (html(WORD), "Twelve, and **plates**."),
    "outlook in German": (
        plain(
            "Zwölf.\n\nVon: Ann <ann@example.com>\nGesendet: Montag, 2. November 2026 10:00\n"
            "An: Ben <ben@example.com>\nBetreff: Tassen\n\nWie viele?\n"
        ),
        "Zwölf.",
    ),
    "outlook of long ago": (
        plain("Twelve.\n\n-----Original Message-----\n" + OUTLOOK_HEADER + "How many?\n"),
        "Twelve.",
    ),
    "outlook on a phone": (html(OUTLOOK_MOBILE), "Twelve."),
    "outlook on the web": (
        plain("Twelve.\n________________________________\n" + OUTLOOK_HEADER + "How many?\n"),
        "Twelve.",
    ),
    "apple mail": (
        both("Twelve.\n\n> On 2 Nov 2026, at 10:00, Ann <ann@example.com> wrote:\n> \n> How many?\n", APPLE),
        "Twelve.",
    ),
    "apple mail, as HTML alone": (html(APPLE), "Twelve."),
    "an iphone": (
        plain("Twelve.\n\nSent from my iPhone\n\n> On Nov 2, 2026, at 10:00, Ann <ann@example.com> wrote:\n> \n> How many?\n"),
        "Twelve.",
    ),
    "thunderbird": (
        plain("Twelve.\n\nOn 02.11.26 10:00, Ann wrote:\n> How many?\n\n-- \nBen\n"),
        "Twelve.",
    ),
    "thunderbird, as HTML alone": (html(THUNDERBIRD), "Twelve."),
    "lines that a program broke": (
        FLOWED,
        "Twelve cups, and as many plates as there are.\nNo forks.\n two spaces, one of which is stuffed",
    ),
    "lines without spaces that a program broke": (DELSP, "茶碗十二個"),
    "a newsletter": (html(NEWSLETTER), "**News**\n\nWe have [cups](https://example.com/c)."),
    "answered below": (plain("On Mon, Ann wrote:\n> How many?\n\nTwelve.\n"), "On Mon, Ann wrote:\n> How many?\n\nTwelve."),
    "a mailing list": (
        plain(
            "Twelve.\n\n_______________________________________________\ncups mailing list\n",
            HEAD + "Precedence: list\r\nList-Id: <cups.example.com>\r\n",
        ),
        "Twelve.\n\n_______________________________________________\ncups mailing list",
    ),
    "a newsletter with a table": (
        html(NEWSLETTER.replace("<img", "<table><tr><th>cups</th><th>plates</th></tr><tr><td>12</td><td>9</td></tr></table><img")),
        "**News**\n\nWe have [cups](https://example.com/c).\n\n| cups | plates |\n| --- | --- |\n| 12 | 9 |",
    ),
    "western, of windows, that says nothing": (
        f"{HEAD}Content-Type: text/plain\r\n\r\nZwölf Tassen, und dann noch ein paar Teller.".encode("cp1252"),
        "Zwölf Tassen, und dann noch ein paar Teller.",
    ),
    "unicode that says less": (
        f"{HEAD}Content-Type: text/plain; charset=us-ascii\r\n\r\nZwölf".encode(),
        "Zwölf",
    ),
    "japanese": (in_charset("iso-2022-jp", "茶碗は十二個です"), "茶碗は十二個です"),
    "japanese, of windows": (in_charset("shift_jis", "①番の茶碗", "cp932"), "①番の茶碗"),
    "western, of windows": (in_charset("windows-1252", "“Zwölf” – 12 €"), "“Zwölf” – 12 €"),
    "western, of windows, that says less": (
        in_charset("iso-8859-1", "“Zwölf” – 12 €", "cp1252"),
        "“Zwölf” – 12 €",
    ),
    "russian": (in_charset("koi8-r", "Двенадцать чашек"), "Двенадцать чашек"),
    "chinese": (in_charset("gb18030", "十二个杯子 𠀀"), "十二个杯子 𠀀"),
    "chinese that says less": (in_charset("gb2312", "十二個杯子 镕", "gb18030"), "十二個杯子 镕"),
    "korean, of windows": (in_charset("ks_c_5601-1987", "똠방각하", "cp949"), "똠방각하"),
    "hebrew": (in_charset("windows-1255", "שתים־עשרה"), "שתים־עשרה"),
    "a text that is cut off within a letter": (
        plain("Zwölf Tassen, mehr weiß ich nicht: ä")[:-1],
        "Zwölf Tassen, mehr weiß ich nicht: �",
    ),
    "base64 that is cut off": (
        (HEAD + PLAIN + "Content-Transfer-Encoding: base64\r\n\r\n").encode()
        + base64.b64encode(b"Twelve cups.")[:-3],
        "Twelve cu",
    ),
    "base64 that is none": (
        (HEAD + PLAIN + "Content-Transfer-Encoding: base64\r\n\r\n!!! Twelve !!!\r\n").encode(),
        None,
    ),
    "an encoding that there is not": (
        (HEAD + PLAIN + "Content-Transfer-Encoding: x-none\r\n\r\nTwelve.\r\n").encode(),
        "Twelve.",
    ),
    "another boundary than it says": (
        (HEAD + "Content-Type: multipart/mixed; boundary=one\r\n\r\n--two\r\n\r\nTwelve.\r\n--two--\r\n").encode(),
        "--two\n\nTwelve.\n--two--",
    ),
    "no boundary at all": (
        (HEAD + "Content-Type: multipart/mixed\r\n\r\nTwelve.\r\n").encode(),
        "Twelve.",
    ),
    "an end that does not come": (
        (HEAD + f"Content-Type: multipart/mixed; boundary=one\r\n\r\n--one\r\n{PLAIN}\r\nTwelve.\r\n").encode(),
        "Twelve.",
    ),
    "no header": (b"Twelve cups: no more.\r\nThe end.\r\n", None),
    "an empty header": (b"\r\nTwelve.\r\n", "Twelve."),
    "a header that does not end": (HEAD.encode().rstrip(), ""),
    "null bytes": (plain("Twe\0lve."), "Twe\0lve."),
    "null bytes in the header": (HEAD.replace("Cups", "Cu\0ps").encode() + b"\r\nTwelve.", "Twelve."),
    "parts two hundred deep": (
        (
            HEAD
            + "".join(f"Content-Type: multipart/mixed; boundary=b{n}\r\n\r\n--b{n}\r\n" for n in range(200))
            + f"{PLAIN}\r\nTwelve.\r\n"
        ).encode(),
        "",
    ),
    "a mail in a mail in a mail": (
        (HEAD + "Content-Type: message/rfc822\r\n\r\n" * 200 + "Twelve.").encode(),
        "",
    ),
}  # fmt: skip
"""By name: the email, and its text, or None if only parsing matters."""


@pytest.mark.parametrize("name", SHAPES)
def test_the_text_of_an_email_is_found(tmp_path: Path, name: str) -> None:
    mail, said = SHAPES[name]
    found = read(tmp_path, mail)
    if said is not None:
        assert found.text == said


@pytest.mark.parametrize("begin", ["Fwd:", "FW:", "WG:", "TR:", "RV:", "ENC:", "転送:"])
def test_a_forwarded_text_is_shown(tmp_path: Path, begin: str) -> None:
    passed_on = (
        "---------- Forwarded message ---------\nFrom: Ann <ann@example.com>\nDate: Mon, Nov 2, 2026"
        " at 10:00 AM\nSubject: Cups\nTo: Ben <ben@example.com>\n\nHow many?\n"
    )
    subject = Header(f"{begin} Cups", "utf-8").encode()
    head = HEAD.replace("Subject: Re: Cups", f"Subject: {subject}")
    for text in ("Look:\n\n" + passed_on, passed_on):
        found = read(tmp_path, plain(text, head))
        assert "How many?" in found.text
        assert "Ann <ann@example.com>" in found.text
    rich = (
        f'<div>Look:</div><div class="gmail_quote"><div class="gmail_attr">{passed_on}</div></div>'
    )
    assert "How many?" in read(tmp_path, html(rich, head)).text


@pytest.mark.parametrize(
    ("header", "automatic", "answered"),
    [
        ("Auto-Submitted: auto-replied (vacation)", True, True),
        ("Auto-Submitted: Auto-Replied", True, True),
        ("X-Autoreply: yes\r\nPrecedence: bulk", True, True),
        ("X-Autorespond: Away", True, True),
        ("X-Autoreply-From: ben@example.com", True, True),
        ("Precedence: auto_reply", True, True),
        ("Auto-Submitted: auto-generated\r\nX-Auto-Response-Suppress: All", True, False),
        ("Precedence: bulk", True, False),
        ("List-Id: Cups <cups.example.com>", True, False),
        ("X-Auto-Response-Suppress: OOF", False, False),
    ],
)
def test_automatic_replies_and_mailing_lists_are_recognized(
    tmp_path: Path, header: str, automatic: bool, answered: bool
) -> None:
    found = read(tmp_path, plain("I am away.", f"{header}\r\n{HEAD}"))
    assert (found.is_automatic, found.is_auto_reply) == (automatic, answered)


def test_a_bounce_is_recognized(tmp_path: Path) -> None:
    report = (
        "From: MAILER-DAEMON@example.com (Mail Delivery System)\r\nSubject: Undelivered Mail Returned"
        " to Sender\r\nAuto-Submitted: auto-replied\r\nContent-Type: multipart/report;"
        ' report-type=delivery-status; boundary="b"\r\n\r\n--b\r\n'
        f"{PLAIN}\r\nI am sorry.\r\n--b\r\nContent-Type: message/delivery-status\r\n\r\n"
        "Reporting-MTA: dns; example.com\r\n\r\nFinal-Recipient: rfc822; x@example.com\r\n"
        "Action: failed\r\nStatus: 5.1.1\r\n\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n"
        f"{HEAD}\r\nHow many?\r\n--b--\r\n"
    )
    assert read(tmp_path, report.encode()).is_auto_reply
    assert read(
        tmp_path, report.replace("Auto-Submitted: auto-replied\r\n", "").encode()
    ).is_auto_reply


@pytest.mark.parametrize("charset", ["utf-8", "cp1252"])
def test_unencoded_names_and_subjects_are_read(tmp_path: Path, charset: str) -> None:
    mail = (
        "From: Zoë <zoe@example.com>\r\nSubject: Re: Café\r\n"
        "Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nTwelve.\r\n--b\r\n"
        'Content-Type: application/pdf; name="Menü.pdf"\r\nContent-Disposition: attachment;'
        ' filename="Menü.pdf"\r\n\r\n%PDF\r\n--b--\r\n'
    ).encode(charset)
    found = read(tmp_path, mail)
    assert (found.title, found.sender) == ("Re: Café", "Zoë <zoe@example.com>")
    assert [file.name for file in found.files] == ["Menü.pdf"]


def test_inline_images_and_signed_parts_are_attachments(tmp_path: Path) -> None:
    mail = (
        f'{HEAD}Content-Type: multipart/related; boundary="r"\r\n\r\n--r\r\n{HTML}\r\n<p>Look: <img'
        ' src="cid:a@b" alt="plan"></p>\r\n--r\r\nContent-Type: image/png; name=plan.png\r\n'
        "Content-ID: <a@b>\r\nContent-Disposition: inline; filename*0*=utf-8''pl%C3%A4;\r\n"
        " filename*1=ne.png\r\nContent-Transfer-Encoding: base64\r\n\r\niVBORw0KGgo=\r\n--r\r\n"
        "Content-Type: text/calendar; method=REQUEST\r\n\r\nBEGIN:VCALENDAR\r\n--r\r\n"
        "Content-Type: application/pkcs7-signature; name=smime.p7s\r\n\r\nx\r\n--r--\r\n"
    )
    found = read(tmp_path, mail.encode())
    assert found.text == "Look: plan"
    names = [file.name for file in found.files]
    assert names == ["pläne.png", "attachment.calendar", "smime.p7s"]


def test_randomly_broken_emails_are_read_or_refused_in_time(tmp_path: Path) -> None:
    rng = random.Random(7)
    shapes = [mail for mail, _ in SHAPES.values() if len(mail) < 5000]
    for _ in range(150):
        mail = bytearray(rng.choice(shapes))
        for _ in range(rng.randint(1, 30)):
            place = rng.randrange(len(mail))
            match rng.randrange(3):
                case 0:
                    mail[place] = rng.randrange(256)
                case 1:
                    del mail[place : place + rng.randrange(40)]
                    mail += b"x"
                case _:
                    mail[place:place] = rng.choice(
                        [b"\r\n", b"--b", b"=?utf-8?b?", b"\xff", b";*0="]
                    )
        read(tmp_path, bytes(mail))
