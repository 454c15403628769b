"""`tertulia audit`, and what the audit log has of the command line."""

import getpass
from typing import get_args

from tertulia.model.audit_log import AuditKind
from tests.cli.support import Place, run


def test_what_the_operator_does_is_recorded_with_the_command(place: Place) -> None:
    place.create_organization()
    place.add("ben")
    changed = run("users", "change", *place.flags, "ben@example.com", "--role", "admin")
    assert changed.exit_code == 0, changed.output
    (record,) = place.answer("audit", "--kind", "role_changed")["records"]
    assert record["origin"]["way"] == "command_line"
    assert record["origin"]["command"] == "tertulia users change"
    assert record["origin"]["agent"] == getpass.getuser()
    assert record["to"] == "ben@example.com"
    assert record["details"] == {"changes": {"role": [400, 200]}}
    every = place.answer("audit", "--user", "ben@example.com")["records"]
    assert [one["kind"] for one in every] == ["role_changed", "account_created"]
    older = place.answer("audit", "--user", "ben@example.com", "--before", str(every[0]["id"]))
    assert [one["kind"] for one in older["records"]] == ["account_created"]

    (founded,) = place.answer("audit", "--kind", "organization_created")["records"]
    assert founded["origin"]["command"] == "tertulia init"

    lines = place.run("audit", "--limit", "1").stdout.splitlines()
    assert lines[0].split() == ["ID", "TIME", "KIND", "BY", "TO", "FROM", "DETAILS"]
    assert "tertulia users change" in lines[1]
    assert len(lines) == 2


def test_an_unknown_kind_is_refused_with_all_kinds(place: Place) -> None:
    place.create_organization()
    refused = place.run("audit", "kind=nonsense")
    assert refused.exit_code == 2
    assert "nonsense" in refused.output
    assert all(kind in refused.output for kind in get_args(AuditKind))
