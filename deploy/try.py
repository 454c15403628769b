#!/usr/bin/env python3
"""Run the steps of the Containerfile without a container engine, and test the result.

    sudo apt-get install mmdebstrap
    sudo python3 deploy/try.py            # takes about 10 minutes and 2 GB in --into

Each stage gets its own root file system, which mmdebstrap makes from the distribution's packages,
and the steps in the Containerfile run there. Then the entry point is started with a read-only root,
as the user in the Containerfile, and can write only to /data and /tmp. The script tests the health
check, the setup page, creating an organization, sending a message, and stopping. It also boots
systemd in such a root, and tests the service that `tertulia init --systemd` installs.

`deploy/roots.py` lists what this script requires.
"""

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from roots import (
    HERE,
    PASSWORD,
    PORT,
    SECONDS,
    Enter,
    Stage,
    answer,
    arguments_of,
    booted,
    create_organization,
    entered,
    key_of,
    network_environment,
    program,
    require,
    send_message,
    separate_network,
    wait_for,
)


def steps(text: str) -> Iterator[tuple[str, str]]:
    """Yield the instructions, each with its arguments."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        yield word.upper(), rest.strip()


class Builder:
    """Runs the instructions of one Containerfile."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._suite: str = arguments.suite
        self.into: Path = arguments.into
        self.bound: Sequence[Path] = arguments.bind
        self._again: bool = arguments.again
        self._stages: list[Stage] = []

    @property
    def last(self) -> Stage:
        return self._stages[-1]

    def run(self, text: str) -> Stage:
        """Run the instructions, and return the last stage."""
        for word, rest in steps(text):
            print(f"-- {word} {rest}", flush=True)
            getattr(self, f"_{word.lower()}")(rest)
        return self.last

    def _arg(self, _: str) -> None:
        """Ignore the base image: the distribution's packages are used instead."""

    def _from(self, rest: str) -> None:
        name = rest.split()[-1] if " AS " in rest else f"stage-{len(self._stages)}"
        root = self.into / name
        if not self._again:
            shutil.rmtree(root, ignore_errors=True)
            subprocess.run(["mmdebstrap", "--variant=minbase", self._suite, str(root)], check=True)
        self._stages.append(Stage(name, root))

    def _run(self, rest: str) -> None:
        if self._again:
            return
        with entered(self.last, self.bound, network=True) as enter:
            command = ["/bin/sh", "-ec", rest]
            enter(command, self.last, network_environment()).check_returncode()

    def _copy(self, rest: str) -> None:
        if self._again:
            return
        words = shlex.split(rest)
        source = HERE
        if words[0].startswith("--from="):
            name = words.pop(0).removeprefix("--from=")
            source = next(one.root for one in self._stages if one.name == name)
        *what, to = words
        into = self.last.root / (Path(self.last.directory) / to).relative_to("/")
        for one in what:
            found = source / one.lstrip("/")
            if found.is_dir():
                target = into if len(what) == 1 else into / found.name
                shutil.copytree(found, target, symlinks=True, dirs_exist_ok=True, ignore=_ignored)
            else:
                into.mkdir(parents=True, exist_ok=True)
                shutil.copy2(found, into)

    def _workdir(self, rest: str) -> None:
        self.last.directory = rest
        (self.last.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)

    def _env(self, rest: str) -> None:
        name, _, value = rest.partition("=")
        self.last.environment[name] = value

    def _user(self, rest: str) -> None:
        self.last.user = rest

    def _volume(self, rest: str) -> None:
        self.last.volumes.append(rest)

    def _expose(self, rest: str) -> None:
        if rest != str(PORT):
            raise SystemExit(
                f"EXPOSE {rest}, but TRY_PORT={PORT}: use the port in the Containerfile"
            )

    def _stopsignal(self, rest: str) -> None:
        self.last.stop = getattr(signal, rest)

    def _healthcheck(self, rest: str) -> None:
        self.last.health = json.loads(rest[rest.index("[") :])

    def _entrypoint(self, rest: str) -> None:
        self.last.entry = json.loads(rest)

    def _cmd(self, rest: str) -> None:
        self.last.command = json.loads(rest)


def _ignored(directory: str, names: list[str]) -> list[str]:
    """Return the names in a copied directory that .dockerignore excludes."""
    above = Path(directory).relative_to(HERE) if Path(directory).is_relative_to(HERE) else None
    if above is None:
        return []
    return [
        name
        for name in names
        if name in {"__pycache__", "node_modules"} or str(above / name) == "src/tertulia/web"
    ]


def try_container(builder: Builder, stage: Stage) -> None:
    """Start the server as the Containerfile does, and test it."""
    with separate_network(), entered(stage, builder.bound, network=False) as enter:
        root = str(stage.root)
        data = builder.into / "data"
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(mode=0o700)
        user, _, group = stage.user.partition(":")
        os.chown(data, int(user), int(group))
        done: list[str] = []
        try:
            for words, at in (
                (["--rbind", root], root),
                (["-o", "remount,bind,ro"], root),
                (["-t", "tmpfs", "-o", "mode=1777", "tmpfs"], f"{root}/tmp"),
                (["--bind", str(data)], f"{root}{stage.volumes[0]}"),
            ):
                subprocess.run(["mount", *words, at], check=True)
                if "remount,bind,ro" not in words:
                    done.append(at)
            _test(enter, stage, builder.into / "log")
        finally:
            for at in reversed(done):
                subprocess.run(["umount", "-l", at], check=True)


def _test(enter: Enter, stage: Stage, log: Path) -> None:
    touched = enter(["/usr/bin/touch", "/opt/tertulia/x"], stage)
    require(touched.returncode != 0, "the root file system is read-only")
    commands: list[tuple[list[str], int]] = [([], 1), (["--workers", "2"], 2)]
    for more, workers in commands:
        with log.open("wb") as output:
            words = enter.words([*stage.entry, *stage.command, *more], stage)
            # As in a container: a separate PID namespace, whose first process is the entry point.
            process = subprocess.Popen(
                [program("unshare"), "--pid", "--fork", "--kill-child=KILL", *words],
                env=stage.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_for(log, process, r"Tertulia is (ready|waiting) at")
            require(enter(stage.health, stage).returncode == 0, f"healthy, {workers} processes")
            if workers == 1:
                create_organization(wait_for(log, process, r"(?<=/setup\?code=)\S+"))
                wait_for(log, process, r"Tertulia is ready at")
            require(answer("/ready")[0] == 200, "ready")
            send_message("hello", key_of("ann@example.com"))
        finally:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for child in children:  # The entry point, which has PID 1.
                os.kill(int(child), stage.stop)
            began = time.monotonic()
            try:
                code = process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        require(code == 0, f"it stops with code {code} after {time.monotonic() - began:.1f} s")
        require("Traceback" not in log.read_text(), "no mistake in its log")


def try_units(builder: Builder, stage: Stage) -> None:
    """Let systemd verify the unit files."""
    units = stage.root / "etc/systemd/system"
    with entered(stage, builder.bound, network=True) as enter:
        wanted = (
            "apt-get update -qq && apt-get install -qq -y --no-install-recommends systemd procps"
        )
        enter(["/bin/sh", "-ec", wanted + " -y"], Stage("", stage.root)).check_returncode()
        units.mkdir(parents=True, exist_ok=True)
        for name in ("tertulia.service", "tertulia.socket"):
            shutil.copy(HERE / "deploy" / name, units)
        own = Stage("", stage.root)
        paths = [f"/etc/systemd/system/tertulia.{kind}" for kind in ("service", "socket")]
        verified = enter(["systemd-analyze", "verify", *paths], own)
        require(verified.returncode == 0, "the unit files are valid")
        rated = enter(
            ["systemd-analyze", "security", "--offline=yes", "--threshold=20", paths[0]], own
        )
        require(rated.returncode == 0, "systemd rates its exposure as 2.0 at most")
    try_service(builder, stage)


SETTINGS = """external_url = "https://localhost"
host = "127.0.0.1"
port = 443
backup_to = "/srv/backups"
tls_cert = "/etc/chat/cert.pem"
tls_key = "/etc/chat/key.pem"
"""


def try_service(builder: Builder, stage: Stage) -> None:
    """Boot systemd, and test the service that `tertulia init --systemd` installs."""
    own, where = Stage("", stage.root), ("--data-dir", "/srv/chat")
    with entered(stage, builder.bound, network=True) as enter:
        line = "apt-get install -qq -y --no-install-recommends dbus passwd openssl curl >/dev/null"
        enter(["/bin/sh", "-ec", line], own).check_returncode()
        for directory in ("chat", "tertulia"):
            (stage.root / "etc" / directory).mkdir(mode=0o700, exist_ok=True)
        (stage.root / "etc/tertulia/tertulia.toml").write_text(SETTINGS)
        enter(["/bin/sh", "-ec", CERTIFICATE], own).check_returncode()
    with booted(own) as inside:
        who = ("--org", "Café", "--email", "ann@example.com", "--full-name", "Ann")
        config = ("--config", "/etc/tertulia/tertulia.toml")
        init = ("/opt/tertulia/bin/tertulia", "init", "--systemd", "--yes", *where, *config)
        installed = inside(*init, *who, "--password", PASSWORD)
        require(
            installed.returncode == 0,
            "init --systemd" + installed.stderr * (installed.returncode != 0),
        )
        names = ("tertulia.service", "tertulia-certificate.path")
        enabled = inside("systemctl", "enable", "--now", *names)
        log = "" if enabled.returncode == 0 else inside("journalctl", "-u", names[0]).stdout
        require(enabled.returncode == 0, "it starts" + log)
        ready = (
            "curl",
            "-sSk",
            "--fail",
            "--retry",
            "20",
            "--retry-connrefused",
            "https://localhost/ready",
        )
        require(inside(*ready).returncode == 0, "it's ready on port 443")

        def serving() -> str:
            return inside("systemctl", "show", "--value", "-p", "MainPID", names[0]).stdout.strip()

        first = serving()
        status = inside("cat", f"/proc/{first}/status").stdout
        user = inside("id", "-u", "tertulia").stdout.strip()
        require(f"Uid:\t{user}\t{user}" in status and user != "0", "it runs as its own user")
        for path, can in (
            ("/srv/backups/x", True),
            ("/srv/chat/x", True),
            ("/etc/x", False),
            ("/srv/x", False),
        ):
            tried = inside(
                "nsenter", "-t", first, "-m", "setpriv", f"--reuid={user}", "touch", path
            )
            require((tried.returncode == 0) is can, f"it {'can' if can else 'cannot'} write {path}")
        inside("rm", "-f", "/srv/backups/x", "/srv/chat/x")
        # The first backup may still be in progress.
        checked = inside("runuser", "-u", "tertulia", "--", init[0], "check", *where, *config)
        require(
            checked.returncode == 0,
            "check finds no problem" + checked.stdout * (checked.returncode != 0),
        )
        made = inside(
            "runuser", "-u", "tertulia", "--", init[0], "backups", "make", *where, *config
        )
        require(made.returncode == 0, "a backup is made" + made.stderr * (made.returncode != 0))
        require(inside("/bin/sh", "-ec", CERTIFICATE).returncode == 0, "the certificate is renewed")
        deadline = time.monotonic() + SECONDS
        while serving() in {first, "0"} and time.monotonic() < deadline:
            time.sleep(0.5)  # Another process can only be polled.
        require(serving() != first, "the service restarts with it")
        require(inside(*ready).returncode == 0, "it's ready again")
        again = inside(*init)
        require(again.returncode == 0, "init --systemd again updates the service")
        require(inside("systemctl", "stop", names[0]).returncode == 0, "it stops")
        log = inside("journalctl", "-u", "tertulia").stdout
        require("Traceback" not in log, "no mistake in its log" + log * ("Traceback" in log))


CERTIFICATE = (
    "cd /etc/chat && openssl req -x509 -newkey rsa:2048 -nodes -days 30 -subj /CN=localhost"
    " -keyout new.key -out new.pem 2>/dev/null && mv new.key key.pem && mv new.pem cert.pem"
)
"""Replaces the certificate and its key, like certbot or another ACME client."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="test the roots that --keep left, without running the steps",
    )
    arguments = arguments_of(parser, "/var/tmp/tertulia-try")
    builder = Builder(arguments)
    try:
        stage = builder.run((HERE / "Containerfile").read_text())
        size = subprocess.run(["du", "-sm", str(stage.root)], capture_output=True, text=True)
        print(f"-- {size.stdout.split()[0]} MB")
        try_container(builder, stage)
        try_units(builder, stage)
    finally:
        if not arguments.keep:
            shutil.rmtree(arguments.into, ignore_errors=True)
    print("All checks passed.")


if __name__ == "__main__":
    main()
