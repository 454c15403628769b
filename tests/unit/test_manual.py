"""The manual: its generated page, its links, and the words that operators look for."""

import re
from pathlib import Path

import pytest
from docs.settings import PAGE, page

DOCS = Path(__file__).parents[2] / "docs"
HEADINGS = "\n".join(
    line
    for path in sorted(DOCS.glob("*.md"))
    for line in path.read_text("utf-8").splitlines()
    if re.match("#+ ", line)
)


def test_the_page_of_settings_lists_all_settings() -> None:
    assert PAGE.read_text("utf-8") == page(), "Run `python -m docs.settings`."


@pytest.mark.parametrize(
    "word",
    ["SSO", "2FA", "LDAP", "firewall", "SELinux", "uninstall", "systemd", "Kubernetes", "restore"],
)
def test_a_heading_has_the_word(word: str) -> None:
    assert re.search(rf"\b{word}\b", HEADINGS, re.IGNORECASE)


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and the manual's site make them."""
    text = re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: path.stem)
def test_links_lead_somewhere(path: Path) -> None:
    text = re.sub(
        r"^```.*?^```|`[^`\n]*`", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    broken = []
    for name, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", text):
        target = path.parent / name if name else path
        if name.endswith("/"):
            target /= "README.md"
        is_there = target.is_file() and (
            target.suffix != ".md" or not anchor or anchor in anchors(target)
        )
        broken += [] if is_there else [f"{name}#{anchor}"]
    assert broken == []
