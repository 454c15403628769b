"""What a server loads before the first request."""

import subprocess
import sys

import pytest

from tests.unit.test_architecture import ROOT

NOT_AT_THE_START = (
    ("PIL", "pictures"),
    ("psycopg", "PostgreSQL"),
    ("apsw", "SQLite"),
    ("cryptography", "API keys and pushes"),
    ("argon2", "passwords"),
    ("joserfc", "identity providers"),
    ("tertulia.identity", "identity providers and directories"),
    ("tertulia.app.sign_in_tables", "configured sign-in methods"),
    ("tertulia.service.provider_methods", "configured sign-in methods"),
    ("tertulia.service.directory_methods", "configured sign-in methods"),
    ("tertulia.service.directories", "directories"),
    ("tertulia.jobs.directories", "directories"),
    ("tertulia.domain.accounts.provisioning", "directories and SCIM"),
    ("tertulia.wire.pages.proven", "configured sign-in methods"),
    ("tertulia.wire.pages.providers", "identity providers"),
    ("tertulia.wire.pages.sign_in_attempt", "identity providers"),
    ("tertulia.wire.pages.header_sign_in", "reverse proxies that sign people in"),
    ("tertulia.wire.scim", "SCIM"),
    ("tertulia.wire.pages.second_step", "second factors"),
    ("tertulia.wire.api.second_factors", "second factors"),
    ("tertulia.service.second_factors", "second factors"),
    ("tertulia.service.passkeys", "passkeys"),
    ("tertulia.wire.api.identities", "linked identities"),
    ("tertulia.wire.api.access_keys", "access keys"),
    ("tertulia.wire.api.audit_log", "the audit log"),
    ("tertulia.wire.files.audit_log", "the audit log"),
    ("tertulia.imports.accounts", "imports"),
    ("concurrent.futures.process", "imports"),
    ("markdown_it", "messages that are rendered"),
    ("email.policy", "mails"),
    ("aiosmtpd", "mails that come in"),
    ("pyrage", "encrypted backups"),
    ("nacl", "pushes to phones"),
    ("feedparser", "feeds"),
    ("jinja2", "pages and mails"),
    ("pygments", "code in messages"),
    ("zxcvbn", "new passwords"),
    ("quickjs", "formulas"),
    ("latex2mathml", "formulas"),
    ("lxml", "pages of other servers"),
    ("httpx", "pages of other servers"),
    ("httpcore", "requests to other servers"),
    ("aiosmtplib", "mails"),
    ("ldap3", "directories"),
    ("onelogin", "SAML"),
    ("xmlsec", "SAML"),
    ("obstore", "files in S3"),
    ("re2", "linkifiers"),
    ("uritemplate", "linkifiers"),
    ("emoji", "emoji in messages"),
    ("disposable_email_domains", "signing up"),
    ("rich", "commands that show a bar"),
    ("prometheus_client", "metrics"),
    ("opentelemetry", "spans"),
    ("tertulia.demo", "the demonstration"),
    ("tertulia.wire.api.openapi", "the interface's description"),
    ("tertulia.wire.mcp.methods", "agents"),
    ("tertulia.integrations.services", "webhooks"),
    ("tertulia.cli.users", "another command"),
)
"""Modules that take memory and time, with their purpose."""


@pytest.fixture(scope="module")
def loaded() -> frozenset[str]:
    """The modules in a process that has loaded the serve command."""
    code = "import sys, tertulia.cli.serve; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(ROOT.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    return frozenset(done.stdout.split())


@pytest.mark.parametrize(("module", "purpose"), NOT_AT_THE_START)
def test_optional_modules_are_not_loaded_at_startup(
    module: str, purpose: str, loaded: frozenset[str]
) -> None:
    assert "tertulia.wire.api.routes" in loaded
    assert module not in loaded, f"only {purpose} should load it"
