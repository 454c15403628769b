"""Settings are declared once, where they are stored."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "web" / "declared.py"


def test_declaring_a_boolean_is_enough_to_add_a_setting(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.unit.added_settings", str(tmp_path), str(SCRIPT)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_client_has_the_declared_settings() -> None:
    """If not, run `make client`."""
    script = runpy.run_path(str(SCRIPT))
    assert script["FILE"].read_text() == script["written"]()
