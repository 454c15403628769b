"""An owner imports an export of another chat server: upload, check, report, and invitations."""

from pathlib import Path

from playwright.sync_api import Route, expect

from tests.browser.conftest import Open, demonstration
from tests.imports.zulip_export import ZulipExportBuilder


def test_an_owner_moves_in(tmp_path: Path, new_page: Open) -> None:
    export = ZulipExportBuilder().packed(tmp_path)
    with demonstration(tmp_path / "demo") as server:
        iris = new_page(server, "iris@cafe.example")
        iris.go("organization/move-in")
        main = iris.page.get_by_role("main")
        main.get_by_label("Export from").select_option("zulip")

        # The connection is lost in the middle of the upload.
        lost: list[Route] = []

        def lose_once(route: Route) -> None:
            lost.append(route)
            if len(lost) == 1:
                route.abort()
            else:
                route.continue_()

        iris.page.route("**/api/v1/tus/*", lose_once)
        main.get_by_label("File", exact=True).set_input_files(export)
        main.get_by_role("button", name="Upload and check").click()
        expect(main.get_by_text("This would be imported from Zulip 11.4:")).to_be_visible(
            timeout=120_000
        )
        assert len(lost) > 1
        expect(main.get_by_role("listitem").filter(has_text="7 messages").last).to_be_visible()

        main.get_by_role("button", name="Start import").click()
        iris.page.get_by_role("dialog").get_by_role("button", name="Start import").click()
        expect(main.get_by_text("Imported from Zulip 11.4:")).to_be_visible(timeout=120_000)
        main.get_by_text("Not imported, for").click()
        expect(main.get_by_text("At most 2 fields can be shown on the user card.")).to_be_visible()
        main.get_by_role("button", name="Invite").click()
        expect(iris.page.locator(".toasts")).to_contain_text("will get an email")

        damaged = tmp_path / "half.tar.gz"
        damaged.write_bytes(export.read_bytes()[:5000])
        main.get_by_label("File", exact=True).set_input_files(damaged)
        main.get_by_role("button", name="Upload and check").click()
        expect(main.get_by_text("half.tar.gz can't be read")).to_be_visible(timeout=120_000)
        # The client has loaded everything again, without being opened again.
        iris.go("organization/users")
        expect(main.get_by_text("Gus", exact=True).first).to_be_attached()
