"""`tertulia init --systemd`: the unit files for the settings. (`deploy/try.py` boots them.)"""

from pathlib import Path

import msgspec
import pytest

from tertulia.cli import systemd
from tertulia.cli.errors import CommandFailed, UsageError
from tertulia.service.config import Config
from tests.cli.support import Place


def drop_in(place: Place, **settings: str | int) -> list[str]:
    config = msgspec.structs.replace(place.config, **settings)
    files = systemd.units(config, place.data_dir / "tertulia.toml")
    return files["tertulia.service.d/settings.conf"].splitlines()


def test_service_can_write_backups_and_read_the_certificate(place: Place) -> None:
    lines = drop_in(
        place,
        backup_to="/srv/back ups",
        tls_cert="/etc/letsencrypt/live/chat/fullchain.pem",
        tls_key="/etc/letsencrypt/live/chat/privkey.pem",
        port=443,
        unix_socket="/run/tertulia/http",
    )
    assert f"ReadWritePaths=-{place.data_dir}" in lines
    assert 'ReadWritePaths=-"/srv/back ups"' in lines
    assert "LoadCredential=tls_cert:/etc/letsencrypt/live/chat/fullchain.pem" in lines
    assert "LoadCredential=tls_key:/etc/letsencrypt/live/chat/privkey.pem" in lines
    assert "AmbientCapabilities=CAP_NET_BIND_SERVICE" in lines
    assert "RuntimeDirectory=tertulia" in lines


def test_service_gets_only_what_the_settings_need(place: Place) -> None:
    lines = drop_in(place, data_dir="/var/lib/tertulia", backup_to="s3://backups/chat")
    assert [line.partition("=")[0] for line in lines if line[0] != "#"] == [
        *("[Service]", "ExecStart", "ExecStart"),
    ]
    inside = drop_in(place, data_dir="/var/lib/tertulia", backup_to="/var/lib/tertulia/backups")
    assert inside == lines


def test_settings_file_is_passed_on(place: Place) -> None:
    file = place.data_dir / "tertulia.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text("")
    command = "\n".join(drop_in(place))
    assert f"--data-dir {place.data_dir} --config {file}" in command


def test_renewed_certificate_restarts_the_service() -> None:
    files = systemd.units(Config(tls_cert="/etc/100%/cert.pem"), Config().data_path / "none")
    assert "PathChanged=/etc/100%%/cert.pem" in files["tertulia-certificate.path"]
    assert "try-restart tertulia.service" in files["tertulia-certificate.service"]


def test_installing_needs_root_and_a_place_that_the_service_sees(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(systemd, "_program", lambda: ["/opt/tertulia/bin/tertulia"])
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="requires root"):
        systemd.require_possible(Config())
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(systemd, "UNITS", Config().data_path / "none")
    with pytest.raises(CommandFailed, match="doesn't use systemd"):
        systemd.require_possible(Config())
    monkeypatch.setattr(systemd, "UNITS", Path("/"))
    with pytest.raises(CommandFailed, match="can't read the data directory in /home/ann"):
        systemd.require_possible(Config(data_dir="/home/ann/chat"))
