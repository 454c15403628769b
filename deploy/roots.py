"""Root file systems made from the distribution's packages, and running programs in them.

The scripts in this directory use them instead of a container engine. They need Linux, root (for
mounts and chroot, in a separate mount namespace), mmdebstrap, access to the distribution's packages
and to the package index that `pip` is configured for, and only Python 3.11 or later.
"""

import argparse
import base64
import contextlib
import ctypes
import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
PORT = int(os.environ.get("TRY_PORT", "9991"))
SECONDS = 120
"""The longest wait for a condition."""
PASSWORD = "correct horse battery staple"
_PASSED_ON = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
_OF_TOOLS = ("PIP_", "UV_", "SSL_CERT_", "npm_config_", "NODE_EXTRA_")
_INDEXES = ("etc/pip.conf", "etc/npmrc", "root/.npmrc", "etc/uv/uv.toml")
"""Configuration files of tools, with their package indexes and certificates."""


@dataclass
class Stage:
    """A root file system, and the settings of its processes."""

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


def arguments_of(parser: argparse.ArgumentParser, into: str) -> argparse.Namespace:
    """Add the common arguments, and return the parsed ones.

    The script must run as root. It's restarted in a separate mount namespace. `into` is the default
    of `--into`.
    """
    parser.add_argument("--suite", default="trixie", help="Debian's release (trixie)")
    parser.add_argument("--into", type=Path, default=Path(into), help="directory for the roots")
    parser.add_argument(
        "--bind",
        type=Path,
        action="append",
        default=[],
        help="a directory or file to mount at the same path in the roots, such as a package index"
        " or certificates",
    )
    parser.add_argument("--keep", action="store_true", help="don't delete the roots afterwards")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("This script mounts file systems. Run it as root.")
    if shutil.which("mmdebstrap") is None:
        raise SystemExit("mmdebstrap is missing: apt-get install mmdebstrap")
    if "TERTULIA_TRY" not in os.environ:
        os.execvpe(
            "unshare",
            ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv],
            {**os.environ, "TERTULIA_TRY": "1"},
        )
    arguments.into.mkdir(parents=True, exist_ok=True)
    return arguments


def network_environment() -> dict[str, str]:
    """Return the environment variables that package managers need."""
    found = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return found | {n: value for n, value in os.environ.items() if n.startswith(_OF_TOOLS)}


@contextmanager
def entered(stage: Stage, bound: Sequence[Path], *, network: bool) -> Iterator["Enter"]:
    """Run programs in the stage's root, with /proc and /dev. With `network`, package managers work
    there too, and the `bound` directories are mounted."""
    mounts: list[Path] = []

    def mount(*words: str, at: str, is_file: bool = False) -> None:
        target = stage.root / at.lstrip("/")
        (target.parent if is_file else target).mkdir(parents=True, exist_ok=True)
        if is_file:
            target.touch()
        subprocess.run(["mount", *words, str(target)], check=True)
        mounts.append(target)

    copied: list[Path] = []
    try:
        mount("-t", "proc", "proc", at="/proc")
        mount("--rbind", "/dev", at="/dev")
        if network:
            shutil.copy("/etc/resolv.conf", stage.root / "etc/resolv.conf")
            for name in _INDEXES:
                there = stage.root / name
                if Path("/", name).exists() and not there.exists():
                    there.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(Path("/", name), there)
                    copied.append(there)
            for one in bound:
                mount("--bind", "-o", "ro", str(one), at=str(one), is_file=one.is_file())
        yield Enter(stage.root)
    finally:
        for target in reversed(mounts):
            subprocess.run(["umount", "-l", str(target)], check=True)
        for there in copied:
            there.unlink()


@contextmanager
def separate_network() -> Iterator[None]:
    """Give this thread and the processes that it starts a separate network with only a loopback
    interface, as containers have, so that all ports are free."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open() as before:
        if libc.unshare(0x40000000):  # CLONE_NEWNET
            raise OSError(ctypes.get_errno(), "A separate network can't be made")
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
                up = struct.pack("16sh22x", b"lo", 1)  # IFF_UP
                fcntl.ioctl(any_socket, 0x8914, up)  # SIOCSIFFLAGS
            yield
        finally:
            libc.setns(before.fileno(), 0)


def program(name: str) -> str:
    """Return a program's path on this machine, since a stage has another PATH."""
    return shutil.which(name) or name


class Enter:
    """Runs programs in a root."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def words(self, command: Sequence[str], stage: Stage) -> list[str]:
        """Return the command line that runs the command as the stage's user, in its directory."""
        inside = f"cd {shlex.quote(stage.directory)} && exec {shlex.join(command)}"
        return [
            program("chroot"),
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


_BOOT = """
set -e
mount --bind "$0" "$0"
mount -t proc proc "$0/proc"
mount -t sysfs -o ro sysfs "$0/sys"
mount -t cgroup2 cgroup2 "$0/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$0/run"
mount -t tmpfs -o mode=755 tmpfs "$0/dev"
# New nodes instead of this machine's: systemd changes the mode of its console.
for node in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0" "console 1 3"; do
    set -- $node
    mknod -m 666 "$0/dev/$1" c "$2" "$3"
done
mkdir "$0/dev/shm" "$0/dev/pts"
mount -t tmpfs tmpfs "$0/dev/shm"
mount -t devpts devpts "$0/dev/pts"
ln -s pts/ptmx "$0/dev/ptmx"
ln -s /proc/self/fd "$0/dev/fd"
cd "$0"
pivot_root . .
umount -l .
mount --make-rshared /
exec env -i container=podman PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
    /lib/systemd/systemd --system --log-target=null
"""
"""Makes systemd the first process of the root in $0."""


_ENTERED = ("--mount", "--pid", "--net", "--cgroup", "--root")


@contextmanager
def booted(stage: Stage) -> Iterator[Callable[..., "subprocess.CompletedProcess[str]"]]:
    """Run systemd as the first process of the stage's root, with a separate network. Yields a
    function that runs a command there."""
    mounts = Path("/proc/mounts").read_text().splitlines()
    where = next(Path(one.split()[1]) for one in mounts if one.split()[2] == "cgroup2")
    group = where / f"tertulia-try-{os.getpid()}"
    group.mkdir()
    apart = ["--mount", "--pid", "--fork", "--cgroup", "--uts", "--ipc", "--net"]
    process = subprocess.Popen(
        [program("unshare"), *apart, "--kill-child=KILL", "sh", "-c", _BOOT, str(stage.root)],
        preexec_fn=lambda: (group / "cgroup.procs").write_text(str(os.getpid())) and None,
    )

    def inside(*command: str) -> "subprocess.CompletedProcess[str]":
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        first = children.read_text().split()
        words = [program("nsenter"), "-t", first[0] if first else "0", *_ENTERED]
        return subprocess.run(
            [*words, *command], capture_output=True, text=True, check=False, env=stage.environment
        )

    try:
        deadline = time.monotonic() + SECONDS
        while inside("systemctl", "is-system-running").stdout.strip() not in {
            "running",
            "degraded",
        }:
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit("systemd doesn't start in this root.")
            time.sleep(0.2)  # Another process can only be polled.
        yield inside
    finally:
        process.kill()
        process.wait()
        _remove_group(group)


def _remove_group(group: Path) -> None:
    """Remove a control group with its subgroups, when their processes have ended."""
    deadline = time.monotonic() + SECONDS
    while group.exists():
        for directory, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(directory)
        if time.monotonic() > deadline:
            raise SystemExit(f"{group} still has processes.")
        time.sleep(0.1)  # Other processes can only be polled.


def answer(path: str, form: dict[str, str] | None = None, key: str = "") -> tuple[int, str]:
    """Send a request to the server. Return the response's status and body."""
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}")
    if form is not None:
        request.data = urllib.parse.urlencode(form).encode()
    if key:
        request.add_header("Authorization", "Basic " + base64.b64encode(key.encode()).decode())
    try:
        with urllib.request.urlopen(request, timeout=30) as found:
            return found.status, found.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def wait_for(log: Path, process: "subprocess.Popen[bytes]", pattern: str) -> str:
    """Wait until the server prints the pattern, and return the match."""
    deadline = time.monotonic() + SECONDS
    while True:
        if found := re.search(pattern, log.read_text()):
            return found[0]
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"The server didn't print {pattern}:\n{log.read_text()}")
        time.sleep(0.1)  # Another process can only be polled.


def require(holds: bool, what: str) -> None:
    print(("ok      " if holds else "FAILED  ") + what, flush=True)
    if not holds:
        raise SystemExit(1)


def create_organization(code: str) -> None:
    """Create the organization on the setup page."""
    status, page = answer(f"/setup?code={code}")
    require(status == 200 and code in page, "the setup page is shown")
    filled = {
        "code": code,
        "organization": "Café Central",
        "full_name": "Ann",
        "email": "ann@example.com",
        "password": PASSWORD,
    }
    status, page = answer("/setup", filled)
    require(status in {200, 303}, f"the organization is created ({status})")


def key_of(address: str) -> str:
    """Return the email address and the API key, as used for Basic authentication."""
    body = answer("/api/v1/fetch_api_key", {"username": address, "password": PASSWORD})[1]
    return f"{address}:{json.loads(body)['api_key']}"


def send_message(text: str, key: str) -> None:
    """Send a message to the first channel."""
    sent = {"type": "stream", "to": "general", "topic": "t", "content": text}
    status, _ = answer("/api/v1/messages", sent, key)
    require(status == 200, f"a message is sent: {text}")


def messages(key: str, topic: str = "t") -> list[str]:
    """Return the Markdown of the messages of a topic in the first channel."""
    asked = {
        "anchor": "newest",
        "num_before": "5000",
        "num_after": "0",
        "apply_markdown": "false",
        "narrow": json.dumps([["channel", "general"], ["topic", topic]]),
    }
    _, body = answer("/api/v1/messages?" + urllib.parse.urlencode(asked), key=key)
    return [one["content"] for one in json.loads(body)["messages"]]
