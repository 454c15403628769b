"""Administrators make, download, and delete data exports."""

import tarfile
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.e2e.server import Server


def test_an_export_is_made_downloaded_and_deleted(
    demo_server: Server, shared_page: Open, tmp_path: Path
) -> None:
    iris = shared_page(demo_server, "iris@cafe.example")
    iris.go("organization/data-exports-admin")
    main = iris.page.get_by_role("main")
    expect(main).to_contain_text("people allow exports to include their private data")
    main.get_by_role("button", name="Export public data").click()
    link = main.get_by_role("link", name="Download")
    expect(link).to_be_visible()
    with iris.page.expect_download() as download:
        link.click()
    file = tmp_path / "export.tar.gz"
    download.value.save_as(file)
    with tarfile.open(file) as tar:
        assert "export/realm.json" in tar.getnames()
    main.get_by_role("button", name="Delete export").click()
    expect(main.get_by_text("Deleted · Iris Vidal")).to_be_visible()
    expect(link).to_have_count(0)
