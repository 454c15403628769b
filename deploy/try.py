#!/usr/bin/env python3
"""Run the steps of the Containerfile without a container engine, and try what comes out.

    sudo apt-get install mmdebstrap
    sudo python3 deploy/try.py            # some minutes, and two gigabytes below --into

Each stage gets a root file system of its own, made from the distribution's packages by mmdebstrap;
its steps run there, as they are written in the Containerfile. Then the entry point is started with
a root that cannot be written, as the user that the file names, and with no more than /data and
/tmp of its own. Looked at are the health check, the first page, an organization, a message, and
whether it ends when it is told. The files of systemd are checked in such a root as well.

It needs Linux, root (mounts and chroot; everything is in a mount namespace of its own), and the
ways to the distribution's packages and to the package index that `pip` knows. It runs on Python
alone, of 3.11 or later.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
PORT = 9991
SECONDS = 120
"""Until something that is waited for is given up."""
PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@dataclass
class Stage:
    """A root file system, and what the Containerfile says of its processes."""

    name: str
    root: Path
    environment: dict[str, str] = field(
        default_factory=lambda: {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    )
    directory: str = "/"
    user: str = "0:0"
    entry: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)
    stop: int = signal.SIGTERM


def steps(text: str) -> Iterator[tuple[str, str]]:
    """The instructions, each with what follows it."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        yield word.upper(), rest.strip()


class Builder:
    """Runs the instructions of one Containerfile."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._suite: str = arguments.suite
        self._into: Path = arguments.into
        self._bound: Sequence[Path] = arguments.bind
        self._again: bool = arguments.again
        self._stages: list[Stage] = []

    @property
    def last(self) -> Stage:
        return self._stages[-1]

    def run(self, text: str) -> Stage:
        """The last stage."""
        for word, rest in steps(text):
            print(f"-- {word} {rest}", flush=True)
            getattr(self, f"_{word.lower()}")(rest)
        return self.last

    def _arg(self, _: str) -> None:
        """The base: it is the distribution's packages here."""

    def _from(self, rest: str) -> None:
        name = rest.split()[-1] if " AS " in rest else f"stage-{len(self._stages)}"
        root = self._into / name
        if not self._again:
            shutil.rmtree(root, ignore_errors=True)
            subprocess.run(["mmdebstrap", "--variant=minbase", self._suite, str(root)], check=True)
        self._stages.append(Stage(name, root))

    def _run(self, rest: str) -> None:
        if self._again:
            return
        with self.entered(self.last, network=True) as enter:
            environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
            own = ("PIP_", "npm_config_", "NODE_EXTRA_")
            environment |= {n: v for n, v in os.environ.items() if n.startswith(own)}
            enter(["/bin/sh", "-ec", rest], self.last, environment).check_returncode()

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
            raise SystemExit(f"EXPOSE {rest}: this looks at port {PORT}")

    def _stopsignal(self, rest: str) -> None:
        self.last.stop = getattr(signal, rest)

    def _healthcheck(self, rest: str) -> None:
        self.last.health = json.loads(rest[rest.index("[") :])

    def _entrypoint(self, rest: str) -> None:
        self.last.entry = json.loads(rest)

    def _cmd(self, rest: str) -> None:
        self.last.command = json.loads(rest)

    @contextmanager
    def entered(self, stage: Stage, *, network: bool) -> Iterator["Enter"]:
        """Run programs in the stage's root: with /proc and /dev, and where `network` is wanted with
        what leads to packages."""
        mounts: list[Path] = []

        def mount(*words: str, at: str) -> None:
            target = stage.root / at.lstrip("/")
            target.mkdir(parents=True, exist_ok=True)
            subprocess.run(["mount", *words, str(target)], check=True)
            mounts.append(target)

        try:
            mount("-t", "proc", "proc", at="/proc")
            mount("--rbind", "/dev", at="/dev")
            if network:
                shutil.copy("/etc/resolv.conf", stage.root / "etc/resolv.conf")
                if Path("/etc/pip.conf").exists():
                    shutil.copy("/etc/pip.conf", stage.root / "etc/pip.conf")
                for one in self._bound:
                    mount("--bind", "-o", "ro", str(one), at=str(one))
            yield Enter(stage.root)
        finally:
            for target in reversed(mounts):
                subprocess.run(["umount", "-l", str(target)], check=True)
            if network:
                (stage.root / "etc/pip.conf").unlink(missing_ok=True)


def _ignored(directory: str, names: list[str]) -> list[str]:
    """What .dockerignore names, below a directory that is copied."""
    above = Path(directory).relative_to(HERE) if Path(directory).is_relative_to(HERE) else None
    if above is None:
        return []
    return [
        name
        for name in names
        if name in {"__pycache__", "node_modules"} or str(above / name) == "src/tertulia/web"
    ]


def _program(name: str) -> str:
    """Its path on this machine: a stage's PATH is another."""
    return shutil.which(name) or name


class Enter:
    """Runs programs in a root."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def words(self, command: Sequence[str], stage: Stage) -> list[str]:
        """What runs the command as the stage's user, in its directory."""
        inside = f"cd {shlex.quote(stage.directory)} && exec {shlex.join(command)}"
        return [
            _program("chroot"),
            f"--userspec={stage.user}",
            str(self._root),
            "/bin/sh",
            "-c",
            inside,
        ]

    def __call__(
        self, command: Sequence[str], stage: Stage, more: dict[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        environment = {**stage.environment, **(more or {})}
        return subprocess.run(self.words(command, stage), env=environment, text=True, check=False)


def answer(path: str, form: dict[str, str] | None = None, key: str = "") -> tuple[int, str]:
    """The status and the body of what the server answers."""
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}")
    if form is not None:
        request.data = urllib.parse.urlencode(form).encode()
    if key:
        import base64

        request.add_header("Authorization", "Basic " + base64.b64encode(key.encode()).decode())
    try:
        with urllib.request.urlopen(request, timeout=30) as found:
            return found.status, found.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def wait_for(log: Path, process: "subprocess.Popen[bytes]", pattern: str) -> str:
    """What the server prints."""
    deadline = time.monotonic() + SECONDS
    while True:
        if found := re.search(pattern, log.read_text()):
            return found[0]
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"It does not print {pattern}:\n{log.read_text()}")
        time.sleep(0.1)  # Another process: only its log tells.


def require(holds: bool, what: str) -> None:
    print(("ok      " if holds else "FAILED  ") + what, flush=True)
    if not holds:
        raise SystemExit(1)


def try_container(builder: Builder, stage: Stage) -> None:
    """Start what the Containerfile starts, and look at it."""
    with builder.entered(stage, network=False) as enter:
        root = str(stage.root)
        data = builder._into / "data"
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
            _look_at(enter, stage, builder._into / "log")
        finally:
            for at in reversed(done):
                subprocess.run(["umount", "-l", at], check=True)


def _look_at(enter: Enter, stage: Stage, log: Path) -> None:
    touched = enter(["/usr/bin/touch", "/opt/tertulia/x"], stage)
    require(touched.returncode != 0, "the root cannot be written")
    commands: list[tuple[list[str], int]] = [([], 1), (["--workers", "2"], 2)]
    for more, workers in commands:
        with log.open("wb") as said:
            words = enter.words([*stage.entry, *stage.command, *more], stage)
            # As in a container: a number space of its own, whose first process is the entry point.
            process = subprocess.Popen(
                [_program("unshare"), "--pid", "--fork", "--kill-child=KILL", *words],
                env=stage.environment,
                stdout=said,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_for(log, process, r"Tertulia is (ready|waiting) at")
            require(enter(stage.health, stage).returncode == 0, f"healthy, {workers} processes")
            if workers == 1:
                _found(wait_for(log, process, r"(?<=/setup\?code=)\S+"), stage)
                wait_for(log, process, r"Tertulia is ready at")
            require(answer("/ready")[0] == 200, "ready")
            key = json.loads(
                answer(
                    "/api/v1/fetch_api_key", {"username": "ann@example.com", "password": PASSWORD}
                )[1]
            )
            sent = answer(
                "/api/v1/messages",
                {"type": "stream", "to": "general", "topic": "t", "content": "hello"},
                f"ann@example.com:{key['api_key']}",
            )
            require(sent[0] == 200, "a message was sent")
        finally:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            for child in children:  # The entry point, the first of its numbers.
                os.kill(int(child), stage.stop)
            began = time.monotonic()
            try:
                code = process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        require(code == 0, f"it ended with code {code}, {time.monotonic() - began:.1f} s after")
        require("Traceback" not in log.read_text(), "no mistake in its log")


PASSWORD = "correct horse battery staple"


def _found(code: str, stage: Stage) -> None:
    status, page = answer(f"/setup?code={code}")
    require(status == 200 and code in page, "the first page")
    filled = {
        "code": code,
        "organization": "Café Central",
        "full_name": "Ann",
        "email": "ann@example.com",
        "password": PASSWORD,
    }
    status, page = answer("/setup", filled)
    require(status in {200, 303}, f"an organization was made ({status})")


def try_units(builder: Builder, stage: Stage) -> None:
    """Let systemd read the files that are for it."""
    units = stage.root / "etc/systemd/system"
    with builder.entered(stage, network=True) as enter:
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
        require(verified.returncode == 0, "systemd reads the units")
        rated = enter(
            ["systemd-analyze", "security", "--offline=yes", "--threshold=20", paths[0]], own
        )
        require(rated.returncode == 0, "systemd finds it hardened (exposure of 2.0 at most)")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--suite", default="trixie", help="Debian's release (trixie)")
    parser.add_argument(
        "--into", type=Path, default=Path("/var/tmp/tertulia-try"), help="where roots are made"
    )
    parser.add_argument(
        "--bind",
        type=Path,
        action="append",
        default=[],
        help="a directory that steps find at the same place, such as an index of packages",
    )
    parser.add_argument("--keep", action="store_true", help="leave the roots where they are")
    parser.add_argument(
        "--again", action="store_true", help="try once more what --keep left, without its steps"
    )
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("This mounts and changes roots: run it as root.")
    if shutil.which("mmdebstrap") is None:
        raise SystemExit("mmdebstrap is missing: apt-get install mmdebstrap")
    if "TERTULIA_TRY" not in os.environ:
        os.execvpe(
            "unshare",
            ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv],
            {**os.environ, "TERTULIA_TRY": "1"},
        )
    arguments.into.mkdir(parents=True, exist_ok=True)
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
    print("All of it works.")


if __name__ == "__main__":
    main()
