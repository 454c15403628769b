"""Owners read the audit log, filter it, and download it."""

import csv
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.e2e.server import Server


def test_the_audit_log_is_filtered_and_downloaded(
    demo_server: Server, shared_page: Open, tmp_path: Path
) -> None:
    iris = shared_page(demo_server, "iris@cafe.example")
    iris.go("organization/organization-permissions")
    iris.go("organization/audit-log")
    main = iris.page.get_by_role("main")
    action = main.get_by_role("combobox", name="Action")
    action.select_option("Signed in")
    items = main.get_by_role("listitem").filter(has_text="127.0.0.1")
    expect(items.first).to_contain_text("Signed in")
    action.select_option("Account erased")
    expect(main).to_contain_text("No matching records")
    action.select_option("All actions")
    person = main.get_by_role("combobox", name="Person")
    person.fill("Iris")
    person.press("Enter")
    expect(main.get_by_role("button", name="Remove Iris Vidal")).to_be_visible()
    expect(items.first).to_contain_text("By Iris Vidal")
    with iris.page.expect_download() as download:
        main.get_by_role("button", name="Download as CSV").click()
    file = tmp_path / "audit-log.csv"
    download.value.save_as(file)
    with file.open(encoding="utf-8-sig", newline="") as opened:
        rows = list(csv.DictReader(opened))
    assert {row["actor"].partition(" <")[0] for row in rows} == {"Iris Vidal"}
