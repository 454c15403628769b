#!/usr/bin/env python3
"""Install Tertulia in each way that README describes, in new root file systems, and test it.

    make release DRAFT=1
    sudo apt-get install mmdebstrap
    sudo python3 deploy/try_installing.py     # takes 15 minutes and 2 GB in --into

Each method (uv, pipx, pip with hashes, and pip with hashes and all extras) gets a separate root,
which mmdebstrap makes from the distribution's packages, and an unprivileged user. The script
reports the time and disk space of the installation. It tests the setup page, creating an
organization, and sending a message, and that removing the program leaves only the data.

With pip, it also tests email, an invitation, the `zulip` package, a backup, restoring it, and that
no message is lost while the server is killed and restarted. In further roots, it installs every
earlier release whose data is recorded in `tests/stored`, upgrades it to this release, restores a
backup of the earlier release, and goes back to that release.

`deploy/roots.py` lists what this script requires. If port 9991 is in use, set TRY_PORT=9992.
"""

import argparse
import re
import resource
import shutil
import socketserver
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from roots import (
    HERE,
    PASSWORD,
    PORT,
    SECONDS,
    Enter,
    Stage,
    answer,
    arguments_of,
    create_organization,
    entered,
    key_of,
    messages,
    network_environment,
    require,
    send_message,
    wait_for,
)

COMMITS = {"0.1.0": "bf6d6c96"}
"""The commits of releases without a tag."""
HOME = "/home/ann"
USER = "1000:1000"


class Method(NamedTuple):
    """A way to install Tertulia."""

    prepare: str
    """The shell command that root runs first."""
    install: str
    """The shell command that installs it, with `{wheel}` and optionally `{requirements}` or
    `{extras}`."""
    remove: str
    directory: str
    """The installation's directory, relative to the home directory."""
    program: str


def with_pip(requirements: str) -> Method:
    """Return the method with pip, and the hashes in a file of the release."""
    return Method(
        f"{APT} python3-venv",
        "python3 -m venv tertulia && tertulia/bin/pip install -q --require-hashes"
        f" --only-binary :all: -r {requirements}"
        " && tertulia/bin/pip install -q --no-deps {wheel}",
        "rm -r tertulia",
        "tertulia",
        "tertulia/bin/tertulia",
    )


APT = "apt-get update -qq && apt-get install -qq -y --no-install-recommends"
METHODS = {
    "uv": Method(
        f"{APT} python3-venv && python3 -m venv /usr/local/uv"
        " && /usr/local/uv/bin/pip install -q uv"
        " && ln -s /usr/local/uv/bin/uv /usr/local/bin/uv",
        "uv tool install -q {wheel}",
        "uv tool uninstall -q tertulia",
        ".local",
        ".local/bin/tertulia",
    ),
    "pipx": Method(
        f"{APT} pipx",
        "pipx install -q {wheel}",
        "pipx uninstall tertulia",
        ".local",
        ".local/bin/tertulia",
    ),
    "pip": with_pip("{requirements}"),
    "extras": with_pip("{extras}"),
}
EXTRAS = "import ldap3, onelogin.saml2.auth, opentelemetry.sdk, xmlsec, zulip_bots"
"""Imports the packages of all extras: xmlsec and lxml must use the same version of libxml2."""


class Installation:
    """A root with a user who installs Tertulia there."""

    def __init__(self, enter: Enter, stage: Stage, method: Method) -> None:
        self._enter = enter
        self._method = method
        self.home = stage.root / HOME.lstrip("/")
        self.user = Stage(
            "",
            stage.root,
            {"PATH": f"{HOME}/.local/bin:/usr/local/bin:/usr/bin:/bin", "HOME": HOME},
            directory=HOME,
            user=USER,
        )

    def shell(self, line: str, **more: str) -> None:
        """Run a shell command as the user, with access to packages."""
        environment = {**network_environment(), **more}
        self._enter(["/bin/sh", "-ec", line], self.user, environment).check_returncode()

    def tertulia(self, *words: str, **more: str) -> str:
        """Run a `tertulia` command, which must succeed. Return its standard output and error."""
        command = self._enter.words([f"{HOME}/{self._method.program}", *words], self.user)
        environment = {**self.user.environment, **more}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        output = done.stdout + done.stderr
        require(
            done.returncode == 0, f"tertulia {' '.join(words)}" + output * bool(done.returncode)
        )
        return output

    def install(self, wheel: Path) -> str:
        """Install it. Return the duration, the CPU time, and the size without caches, as a text."""
        requirements = requirements_of(wheel)
        extras = requirements.with_stem(f"{requirements.stem}-extras")
        for file in (wheel, requirements, *([extras] if extras.exists() else [])):
            shutil.copy(file, self.home)
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        self.shell(
            self._method.install.format(
                wheel=f"./{wheel.name}", requirements=requirements.name, extras=extras.name
            )
        )
        seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        size = subprocess.run(
            ["du", "-sm", str(self.home / self._method.directory)],
            capture_output=True,
            text=True,
        )
        return f"{seconds:.0f} s, {busy:.0f} s of CPU time, {size.stdout.split()[0]} MB"

    def remove(self) -> None:
        self.shell(self._method.remove)
        left = [
            str(one.relative_to(self.home))
            for one in self.home.rglob("*tertulia*")
            if one.suffix not in {".whl", ".txt"}
            and not {"chat", "again", "backups", ".cache"} & {*one.parts}
        ]
        require(not left, "only the data is left" + f": {left}" * bool(left))

    @contextmanager
    def serving(
        self,
        directory: str = "chat",
        settings: Mapping[str, str] = MappingProxyType({}),
        *,
        killed: bool = False,
    ) -> Iterator[str]:
        """Run the server within the context. Yields the code of the setup page, or an empty text if
        the organization exists. If `killed`, the server ends with SIGKILL."""
        more_words = ["--data-dir", directory, "--port", str(PORT)]
        words = [f"{HOME}/{self._method.program}", "serve", *more_words]
        log = self.home / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                self._enter.words(words, self.user),
                env={**self.user.environment, **settings},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_for(log, process, r"Tertulia is (ready|waiting) at \S+")
            code = re.search(r"/setup\?code=(\S+)", log.read_text())
            yield code[1] if code else ""
        finally:
            process.kill() if killed else process.terminate()
            try:
                ended = process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        if killed:
            return
        require(ended == 0 and "Traceback" not in log.read_text(), "it stops without errors")


class MailServer:
    """A mail server that keeps the emails that it receives."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        outer = self

        class Session(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self.wfile.write(b"220 mail\r\n")
                while line := self.rfile.readline().decode().strip().upper():
                    if line == "DATA":
                        self.wfile.write(b"354 go on\r\n")
                        lines = iter(lambda: self.rfile.readline(), b".\r\n")
                        outer.texts.append(b"".join(lines).decode())
                    self.wfile.write(b"221 bye\r\n" if line == "QUIT" else b"250 well\r\n")
                    if line == "QUIT":
                        return

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Session)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def settings(self) -> dict[str, str]:
        return {
            "TERTULIA_SMTP_HOST": "127.0.0.1",
            "TERTULIA_SMTP_PORT": str(self._server.server_address[1]),
            "TERTULIA_SMTP_SECURITY": "none",
            "TERTULIA_EXTERNAL_URL": f"http://127.0.0.1:{PORT}",
        }

    def expect(self, pattern: str) -> str:
        """Wait until an email has the pattern, and return the match."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            for text in self.texts:
                # Quoted-printable: long lines continue after an equals sign.
                if found := re.search(pattern, text.replace("=\r\n", "").replace("=3D", "=")):
                    return found[0]
            time.sleep(0.1)  # Another process can only be polled.
        raise SystemExit(f"No email has {pattern}: {self.texts}")

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


CLIENT = """
import sys, zulip
client = zulip.Client(site=sys.argv[1], email=sys.argv[2], api_key=sys.argv[3])
sent = {"type": "stream", "to": "general", "topic": "t", "content": "by zulip"}
assert client.send_message(sent)["result"] == "success"
asked = {"anchor": "newest", "num_before": 1, "num_after": 0, "narrow": []}
(found,) = client.get_messages(asked)["messages"]
assert found["content"] == "<p>by zulip</p>", found
"""


class Senders:
    """People who each send one message after the other to the first channel, until they're closed.
    If a message fails because the server is down, they send another one."""

    def __init__(self, keys: list[str]) -> None:
        self._acknowledged: list[str] = []
        self._open = True
        self._people = [
            threading.Thread(target=self._send, args=(number, key), daemon=True)
            for number, key in enumerate(keys)
        ]
        for one in self._people:
            one.start()

    def _send(self, number: int, key: str) -> None:
        sent = 0
        while self._open:
            sent += 1
            text = f"message {sent} of {number}"
            form = {"type": "stream", "to": "general", "topic": "talk", "content": text}
            try:
                status, _ = answer("/api/v1/messages", form, key)
            except (OSError, HTTPException):
                status = 0
            if status == 200:
                self._acknowledged.append(text)
            else:
                time.sleep(0.1)  # The server is starting.

    def wait_for_more(self, count: int) -> None:
        """Wait until `count` more messages are acknowledged."""
        wanted, deadline = len(self._acknowledged) + count, time.monotonic() + SECONDS
        while len(self._acknowledged) < wanted:
            if time.monotonic() > deadline:
                raise SystemExit(f"Sending {count} messages took more than {SECONDS} s.")
            time.sleep(0.05)  # Other threads can only be polled.

    def close(self) -> list[str]:
        """Stop, and return the acknowledged messages."""
        self._open = False
        for one in self._people:
            one.join()
        return self._acknowledged


def try_usage(installation: Installation) -> None:
    """Test email, an invitation, a client, messages while the server restarts, and restoring a
    backup."""
    mail_server = MailServer()
    settings = {**mail_server.settings, "TERTULIA_BACKUP_TO": f"{HOME}/backups"}
    try:
        with installation.serving(settings=settings):
            installation.tertulia(
                "mail", "--data-dir", "chat", "--test", "ann@example.com", **settings
            )
            mail_server.expect("ann@example.com")
            ann = key_of("ann@example.com")
            invited = {"invitee_emails": "ben@example.com", "stream_ids": "[]"}
            status, body = answer(
                "/api/v1/invites", {**invited, "include_realm_default_subscriptions": "true"}, ann
            )
            require(status == 200, "ben@example.com is invited" + body * (status != 200))
            link = mail_server.expect(rf"http://127\.0\.0\.1:{PORT}/join/\S+")
            path = urllib.parse.urlsplit(link).path
            status, _ = answer(path, {"full_name": "Ben", "password": PASSWORD})
            require(status in {200, 303}, "he joins with the link in the email")
            ben = key_of("ben@example.com")
            send_message("from Ben", ben)
            (installation.home / "client.py").write_text(CLIENT)
            installation.shell("python3 -m venv client && client/bin/pip install -q zulip")
            email, _, key = ann.partition(":")
            installation.shell(f"client/bin/python client.py http://127.0.0.1:{PORT} {email} {key}")
            require(messages(ann)[-1] == "by zulip", "the zulip package sends and reads")
        senders = Senders([ann, ben, ann, ben])
        with installation.serving(settings=settings, killed=True):
            senders.wait_for_more(200)
        with installation.serving(settings=settings):
            senders.wait_for_more(200)
            installation.tertulia("backups", "make", "--data-dir", "chat", **settings)
            senders.wait_for_more(50)
        with installation.serving(settings=settings):
            senders.wait_for_more(50)
            acknowledged = senders.close()
            found = messages(ann, "talk")
            require(
                len({*found}) == len(found) and {*acknowledged} <= {*found},
                f"after kill -9, a stop, and a backup, all {len(acknowledged)} messages exist once",
            )
            send_message("after the backup", ann)
            installation.tertulia("first-steps", "--data-dir", "chat", **settings)
    finally:
        mail_server.close()
    *_, newest = sorted((installation.home / "backups").glob("tertulia-*"))
    installation.tertulia("restore", "--data-dir", "again", str(Path("backups", newest.name)))
    installation.tertulia("check", "--data-dir", "again")
    with installation.serving("again"):
        require(
            messages(ann) == ["hello", "from Ben", "by zulip"]
            and len(messages(ann, "talk")) >= 400,
            "the backup is restored",
        )


def try_upgrade(installation: Installation, old: Path, new: Path) -> None:
    """Upgrade from an earlier release, and go back."""
    print(f"-- {old.name}: {installation.install(old)}", flush=True)
    installation.tertulia(
        *("init", "--data-dir", "chat", "--org", "Café Central", "--email", "ann@example.com"),
        *("--full-name", "Ann", "--password", PASSWORD),
    )
    with installation.serving():
        ann = key_of("ann@example.com")
        send_message("from before", ann)
    installation.tertulia("backup", "--data-dir", "chat", "earlier.zip")
    installation.install(new)
    with installation.serving():
        require(
            messages(ann) == ["from before"],
            "the message from before exists, and the API key works",
        )
        send_message("from after", ann)
    installation.tertulia("restore", "--data-dir", "again", "earlier.zip")
    with installation.serving("again"):
        require(messages(ann) == ["from before"], "the earlier release's backup is restored")
    # 0.1 created files that everyone on the machine can read. `check` says how to fix that.
    installation.shell("chmod -R o-rwx chat")
    installation.tertulia("check", "--data-dir", "chat")
    (copy,) = (installation.home / "chat").glob("tertulia.db.before-migration-from-*")
    installation.install(old)
    words = installation._enter.words(
        [f"{HOME}/{installation._method.program}", "serve", "--data-dir", "chat"], installation.user
    )
    done = subprocess.run(
        words, env=installation.user.environment, capture_output=True, text=True, check=False
    )
    require(done.returncode != 0, "the older release refuses the newer database")
    installation.shell(
        f"cd chat && mkdir newer && mv tertulia.db* newer/ && cp -p newer/{copy.name} tertulia.db"
    )
    with installation.serving():
        require(
            messages(ann) == ["from before"],
            "the older release works with the copy from before the upgrade",
        )


@contextmanager
def root(
    arguments: argparse.Namespace, base: Path, name: str, prepare: str
) -> Iterator[tuple[Enter, Stage]]:
    """Yield a new root with a user."""
    stage = Stage(name, arguments.into / name)
    shutil.rmtree(stage.root, ignore_errors=True)
    stage.root.mkdir(parents=True)
    subprocess.run(["tar", "-xf", str(base), "-C", str(stage.root)], check=True)
    with entered(stage, arguments.bind, network=True) as enter:
        line = f"{prepare} && useradd --uid 1000 --create-home ann"
        enter(["/bin/sh", "-ec", line], stage, network_environment()).check_returncode()
        yield enter, stage
    if not arguments.keep:
        shutil.rmtree(stage.root)


def requirements_of(wheel: Path) -> Path:
    """Return the file next to the wheel with the hashes of its dependencies."""
    return wheel.with_name("-".join([*wheel.name.split("-")[:2], "requirements.txt"]))


def built(arguments: argparse.Namespace, base: Path, release: str) -> Path:
    """Build the wheel of an earlier release from its commit, and copy its requirements."""
    commit = COMMITS.get(release, f"v{release}")
    with root(arguments, base, "building", f"{APT} python3-venv") as (enter, stage):
        source = stage.root / "source"
        source.mkdir()
        packed = subprocess.run(
            ["git", "-C", str(HERE), "archive", commit], capture_output=True, check=False
        )
        if packed.returncode:
            raise SystemExit(f"This clone doesn't have {commit}. Pass a wheel with --old.")
        subprocess.run(["tar", "-x", "-C", str(source)], input=packed.stdout, check=True)
        line = "python3 -m venv /v && /v/bin/pip wheel -q --no-deps -w /wheels /source"
        enter(["/bin/sh", "-ec", line], stage, network_environment()).check_returncode()
        (wheel,) = (stage.root / "wheels").glob("*.whl")
        found = Path(shutil.copy(wheel, arguments.into))
        shutil.copy(source / "requirements.txt", requirements_of(found))
        return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--wheel", type=Path, help="the wheel to install (default: the one in dist/)"
    )
    parser.add_argument(
        "--old",
        type=Path,
        action="append",
        help="the wheel of an earlier release, next to its requirements (default: build it)",
    )
    parser.add_argument(
        "--only", choices=[*METHODS, "upgrade"], action="append", help="run only this part"
    )
    arguments = arguments_of(parser, "/var/tmp/tertulia-install")
    wheel: Path | None = arguments.wheel or next((HERE / "dist").glob("*.whl"), None)
    if wheel is None:
        raise SystemExit("dist/ has no wheel. Run `make release DRAFT=1`.")
    base = arguments.into / "base.tar"
    try:
        if not base.exists():
            what = "--include=python3,ca-certificates"
            subprocess.run(
                ["mmdebstrap", "--variant=minbase", what, arguments.suite, str(base)], check=True
            )
        for name, method in METHODS.items():
            if name not in (arguments.only or METHODS):
                continue
            with root(arguments, base, name, method.prepare) as (enter, stage):
                installation = Installation(enter, stage, method)
                print(f"-- {name}: {installation.install(wheel)}", flush=True)
                require("Tertulia" in installation.tertulia("--version"), f"installed with {name}")
                with installation.serving() as code:
                    create_organization(code)
                    require(answer("/ready")[0] == 200, "the same process serves the organization")
                    send_message("hello", key_of("ann@example.com"))
                installation.tertulia("first-steps", "--data-dir", "chat")
                if name == "pip":
                    try_usage(installation)
                if name == "extras":
                    installation.shell(
                        f"tertulia/bin/python -c '{EXTRAS}' && tertulia/bin/pip check"
                    )
                installation.remove()
        if "upgrade" in (arguments.only or ["upgrade"]):
            recorded = {one.parent.name for one in HERE.glob("tests/stored/*/shapes.json")}
            earlier = sorted(recorded - {wheel.name.split("-")[1]})
            for old in arguments.old or [built(arguments, base, one) for one in earlier]:
                with root(arguments, base, "upgrade", METHODS["pip"].prepare) as (enter, stage):
                    try_upgrade(Installation(enter, stage, METHODS["pip"]), old, wheel)
    finally:
        if not arguments.keep:
            shutil.rmtree(arguments.into, ignore_errors=True)
    print("All checks passed.")


if __name__ == "__main__":
    main()
