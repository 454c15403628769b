"""The files in `deploy/` use existing settings and flags. (`deploy/try.py` runs them, and
`tests/browser/test_behind_proxies.py` those for proxies.)
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # has no types

from tertulia.app.config import load
from tertulia.service.config import Config
from tests.cli.support import run

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    ROOT / "Containerfile",
    *sorted(one for one in (ROOT / "deploy").rglob("*") if one.is_file()),
]
YAML = [one for one in FILES if one.suffix == ".yaml" and "templates" not in one.parts]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_named_settings_exist(file: Path) -> None:
    text = file.read_text()
    for name in re.findall(r"\bTERTULIA_([A-Z0-9_]+)", text):
        if file.suffix != ".py":
            assert name.removesuffix("_FILE").lower() in Config.__struct_fields__, name
    for name in re.findall(
        r"credentials?[:=/]tertulia\.(\w+)|LoadCredential=tertulia\.(\w+)", text
    ):
        assert "".join(name) in Config.__struct_fields__, name
    help_text = run("serve", "--help").stdout
    for words in re.findall(r"tertulia serve (.*)", text):
        for flag in re.findall(r"--[a-z-]+", words):
            assert flag in help_text, flag


@pytest.mark.parametrize("file", YAML, ids=lambda file: file.name)
def test_environment_variables_are_valid_settings(file: Path, tmp_path: Path) -> None:
    (tmp_path / "given").write_text("")
    for document in yaml.safe_load_all(file.read_text()):
        for given in environments(document):
            own = {n: str(v) for n, v in given.items() if n.startswith("TERTULIA_")}
            found = {
                name: re.sub(r"\$\{[^}]*\}", "chat.example.com", value)
                if not name.endswith("_FILE")
                else str(tmp_path / "given")
                for name, value in own.items()
            }
            assert load({}, environment=found).external_url in {"", "https://chat.example.com"}


def environments(node: Any) -> list[dict[str, Any]]:
    """The variables of each container in a document."""
    found = []
    if isinstance(node, dict):
        if isinstance(given := node.get("environment"), dict):
            found.append(given)
        if isinstance(given := node.get("env"), list):
            found.append({one["name"]: one["value"] for one in given})
        for inner in node.values():
            found += environments(inner)
    elif isinstance(node, list):
        for inner in node:
            found += environments(inner)
    return found
