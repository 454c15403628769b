#!/usr/bin/env python3
"""Install Tertulia by each way that README names, in fresh root file systems, and live with it.

    make release DRAFT=1
    sudo apt-get install mmdebstrap
    sudo python3 deploy/try_installing.py     # a quarter of an hour, and two gigabytes below --into

Each way (uv, pipx, pip) gets a root of its own, made from the distribution's packages by
mmdebstrap, and a user without rights. Everywhere: how many seconds and megabytes it takes, the
first page, an organization, a message, and that nothing but the data is left when it is removed. In
one of them also mail, an invitation, the `zulip` package, a backup while it serves, and its
restoration. In a last one the first release is upgraded to this one and goes back again.

What it needs, `deploy/roots.py` says. Where port 9991 is taken: TRY_PORT=9992.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
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
    entered,
    found_organization,
    key_of,
    messages,
    network_environment,
    require,
    send_message,
    wait_for,
)

FIRST_RELEASE = "bf6d6c96"
"""The commit at which what 0.1.0 stores was recorded."""
HOME = "/home/ann"
USER = "1000:1000"


class Way(NamedTuple):
    """A way to install it."""

    prepare: str
    """What root does before."""
    install: str
    """With `{wheel}` in it."""
    remove: str
    place: str
    """What it takes, below the home directory."""
    program: str


APT = "apt-get update -qq && apt-get install -qq -y --no-install-recommends"
WAYS = {
    "uv": Way(
        f"{APT} python3-venv && python3 -m venv /usr/local/uv"
        " && /usr/local/uv/bin/pip install -q uv"
        " && ln -s /usr/local/uv/bin/uv /usr/local/bin/uv",
        "uv tool install -q {wheel}",
        "uv tool uninstall -q tertulia",
        ".local",
        ".local/bin/tertulia",
    ),
    "pipx": Way(
        f"{APT} pipx",
        "pipx install -q {wheel}",
        "pipx uninstall tertulia",
        ".local",
        ".local/bin/tertulia",
    ),
    "pip": Way(
        f"{APT} python3-venv",
        "python3 -m venv tertulia && tertulia/bin/pip install -q {wheel}",
        "rm -r tertulia",
        "tertulia",
        "tertulia/bin/tertulia",
    ),
}


class Place:
    """A root with a user who installs it there."""

    def __init__(self, enter: Enter, stage: Stage, way: Way) -> None:
        self._enter = enter
        self._way = way
        self.home = stage.root / HOME.lstrip("/")
        self.user = Stage(
            "",
            stage.root,
            {"PATH": f"{HOME}/.local/bin:/usr/local/bin:/usr/bin:/bin", "HOME": HOME},
            directory=HOME,
            user=USER,
        )

    def shell(self, line: str, **more: str) -> None:
        """Run a line of shell as the user, with the ways to packages."""
        environment = {**network_environment(), **more}
        self._enter(["/bin/sh", "-ec", line], self.user, environment).check_returncode()

    def tertulia(self, *words: str, **more: str) -> str:
        """What the command line prints, on both outputs; it must succeed."""
        command = self._enter.words([f"{HOME}/{self._way.program}", *words], self.user)
        environment = {**self.user.environment, **more}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        require(done.returncode == 0, f"tertulia {' '.join(words)}" + said * bool(done.returncode))
        return said

    def install(self, wheel: Path) -> str:
        """What it took: seconds, those of the processor, and megabytes without caches."""
        shutil.copy(wheel, self.home)
        began, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        self.shell(self._way.install.format(wheel=f"./{wheel.name}"))
        seconds, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        size = subprocess.run(
            ["du", "-sm", str(self.home / self._way.place)], capture_output=True, text=True
        )
        return f"{seconds:.0f} s, {busy:.0f} of the processor, {size.stdout.split()[0]} MB"

    def remove(self) -> None:
        self.shell(self._way.remove)
        left = [
            str(one.relative_to(self.home))
            for one in self.home.rglob("*tertulia*")
            if one.suffix != ".whl" and not {"chat", "again", ".cache"} & {*one.parts}
        ]
        require(not left, "nothing but the data is left" + f": {left}" * bool(left))

    @contextmanager
    def serving(self, directory: str = "chat", **more: str) -> Iterator[str]:
        """The server; the code of its first page where there is nothing yet."""
        more_words = ["--data-dir", directory, "--port", str(PORT)]
        words = [f"{HOME}/{self._way.program}", "serve", *more_words]
        log = self.home / "log"
        with log.open("wb") as said:
            process = subprocess.Popen(
                self._enter.words(words, self.user),
                env={**self.user.environment, **more},
                stdout=said,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_for(log, process, r"Tertulia is (ready|waiting) at \S+")
            code = re.search(r"/setup\?code=(\S+)", log.read_text())
            yield code[1] if code else ""
        finally:
            process.terminate()
            try:
                ended = process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        require(ended == 0 and "Traceback" not in log.read_text(), "it ended well, when told")


class Mails:
    """A mail server that keeps what it is given."""

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
        """What a mail has in it, as soon as it is there."""
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            for text in self.texts:
                # A line that is too long goes on in the next one, after an equals sign.
                if found := re.search(pattern, text.replace("=\r\n", "").replace("=3D", "=")):
                    return found[0]
            time.sleep(0.1)  # Another process: only what it sends tells.
        raise SystemExit(f"No mail has {pattern} in it: {self.texts}")

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


def live(place: Place) -> None:
    """Mail, an invitation, a client, a backup while it serves, its restoration."""
    mails = Mails()
    try:
        with place.serving(**mails.settings):
            place.tertulia(
                "mail", "--data-dir", "chat", "--test", "ann@example.com", **mails.settings
            )
            mails.expect("ann@example.com")
            ann = key_of("ann@example.com")
            invited = {"invitee_emails": "ben@example.com", "stream_ids": "[]"}
            status, told = answer(
                "/api/v1/invites", {**invited, "include_realm_default_subscriptions": "true"}, ann
            )
            require(status == 200, "ben@example.com was invited" + told * (status != 200))
            link = mails.expect(rf"http://127\.0\.0\.1:{PORT}/join/\S+")
            path = urllib.parse.urlsplit(link).path
            status, _ = answer(path, {"full_name": "Ben", "password": PASSWORD})
            require(status in {200, 303}, "and came in by the link of the mail")
            send_message("from Ben", key_of("ben@example.com"))
            (place.home / "client.py").write_text(CLIENT)
            place.shell("python3 -m venv client && client/bin/pip install -q zulip")
            email, _, key = ann.partition(":")
            place.shell(f"client/bin/python client.py http://127.0.0.1:{PORT} {email} {key}")
            require(messages(ann)[-1] == "by zulip", "the zulip package sends and reads")
            place.tertulia("backup", "--data-dir", "chat", "chat.zip")
            send_message("after the backup", ann)
    finally:
        mails.close()
    place.tertulia("restore", "--data-dir", "again", "chat.zip")
    place.tertulia("check", "--data-dir", "again")
    with place.serving("again"):
        found = messages(ann)
        require("from Ben" in found and "after the backup" not in found, "the backup is restored")


def upgrade(place: Place, old: Path, new: Path) -> None:
    """From the first release, and back."""
    print(f"-- the first release: {place.install(old)}", flush=True)
    place.tertulia(
        *("init", "--data-dir", "chat", "--org", "Café Central", "--email", "ann@example.com"),
        *("--full-name", "Ann", "--password", PASSWORD),
    )
    with place.serving():
        ann = key_of("ann@example.com")
        send_message("from before", ann)
    place.install(new)
    with place.serving():
        require(messages(ann) == ["from before"], "what was there before is there, with its key")
        send_message("from after", ann)
    # The first release made what everybody on the machine can read: `check` says how to mend it.
    place.shell("chmod -R o-rwx chat")
    place.tertulia("check", "--data-dir", "chat")
    (copy,) = (place.home / "chat").glob("tertulia.db.before-migration-from-*")
    place.install(old)
    words = place._enter.words(
        [f"{HOME}/{place._way.program}", "serve", "--data-dir", "chat"], place.user
    )
    done = subprocess.run(
        words, env=place.user.environment, capture_output=True, text=True, check=False
    )
    require(done.returncode != 0, "the older release leaves the newer database alone")
    place.shell(
        f"cd chat && mkdir newer && mv tertulia.db* newer/ && cp -p newer/{copy.name} tertulia.db"
    )
    with place.serving():
        require(messages(ann) == ["from before"], "it has gone back to what was before")


@contextmanager
def root(
    arguments: argparse.Namespace, base: Path, name: str, prepare: str
) -> Iterator[tuple[Enter, Stage]]:
    """A fresh root with a user in it."""
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


def built(arguments: argparse.Namespace, base: Path) -> Path:
    """The wheel of the first release, out of the history."""
    with root(arguments, base, "building", f"{APT} python3-venv") as (enter, stage):
        source = stage.root / "source"
        source.mkdir()
        packed = subprocess.run(
            ["git", "-C", str(HERE), "archive", FIRST_RELEASE], capture_output=True, check=False
        )
        if packed.returncode:
            raise SystemExit(f"{FIRST_RELEASE} is not in this clone: name a wheel with --old.")
        subprocess.run(["tar", "-x", "-C", str(source)], input=packed.stdout, check=True)
        line = "python3 -m venv /v && /v/bin/pip wheel -q --no-deps -w /wheels /source"
        enter(["/bin/sh", "-ec", line], stage, network_environment()).check_returncode()
        (wheel,) = (stage.root / "wheels").glob("*.whl")
        return Path(shutil.copy(wheel, arguments.into))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--wheel", type=Path, help="what to install (the one in dist/)")
    parser.add_argument("--old", type=Path, help="the first release's wheel; else it is built")
    parser.add_argument("--only", choices=[*WAYS, "upgrade"], action="append", help="not all of it")
    arguments = arguments_of(parser, "/var/tmp/tertulia-install")
    wheel: Path | None = arguments.wheel or next((HERE / "dist").glob("*.whl"), None)
    if wheel is None:
        raise SystemExit("There is no wheel in dist/: make release DRAFT=1.")
    base = arguments.into / "base.tar"
    try:
        if not base.exists():
            what = "--include=python3,ca-certificates"
            subprocess.run(
                ["mmdebstrap", "--variant=minbase", what, arguments.suite, str(base)], check=True
            )
        for name, way in WAYS.items():
            if name not in (arguments.only or WAYS):
                continue
            with root(arguments, base, name, way.prepare) as (enter, stage):
                place = Place(enter, stage, way)
                print(f"-- {name}: {place.install(wheel)}", flush=True)
                require("Tertulia" in place.tertulia("--version"), f"installed by {name}")
                with place.serving() as code:
                    found_organization(code)
                    require(answer("/ready")[0] == 200, "the same process serves it")
                    send_message("hello", key_of("ann@example.com"))
                place.tertulia("first-steps", "--data-dir", "chat")
                if name == "uv":
                    live(place)
                place.remove()
        if "upgrade" in (arguments.only or ["upgrade"]):
            old = arguments.old or built(arguments, base)
            with root(arguments, base, "upgrade", WAYS["pip"].prepare) as (enter, stage):
                upgrade(Place(enter, stage, WAYS["pip"]), old, wheel)
    finally:
        if not arguments.keep:
            shutil.rmtree(arguments.into, ignore_errors=True)
    print("All of it works.")


if __name__ == "__main__":
    main()
