"""Try a built wheel as a new user would: an empty environment, an empty folder, no network.

    python tools/try_wheel.py dist/attnscope-*.whl

Installs the wheel alone, without extras; counts the packages that it brings; then runs the commands
of the README's first page in an empty folder, each with its sockets closed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

MOST_PACKAGES = 30  # beyond torch and what torch brings
CONSTRAINTS = Path(__file__).parents[1] / "constraints.txt"
# Imported by Python at its start: nothing but loopback and local sockets can be reached.
NO_NETWORK = """
import socket

connect = socket.socket.connect


def refuse(self, address):
    if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"a connection to {address} was tried")
    return connect(self, address)


socket.socket.connect = refuse
"""
COMMANDS = (
    ["--version"],
    ["list"],
    ["demo"],
    ["run", "snell/fig3", "--quick"],
    ["claims", "runs"],
    ["report", "runs"],
)


def packages(python: Path) -> list[str]:
    """Return the names of the packages that an environment holds."""
    command = [str(python), "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"]
    found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    return sorted(row["name"].lower() for row in found)


def install(python: Path, *names: str) -> None:
    """Install packages into an environment, in the versions that CI uses."""
    command = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    subprocess.run([*command, "-c", str(CONSTRAINTS), *names], check=True)


def main() -> None:
    """Install a wheel, count, and run."""
    (wheel,) = (Path(name).resolve() for name in sys.argv[1:])
    with tempfile.TemporaryDirectory() as scratch:
        environment, folder = Path(scratch, "environment"), Path(scratch, "folder")
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        install(python, "torch")
        torch = set(packages(python))
        install(python, str(wheel))
        brought = [name for name in packages(python) if name not in torch | {"attnscope"}]
        print(f"{len(brought)} packages beyond torch: {', '.join(brought)}")
        if len(brought) > MOST_PACKAGES:
            sys.exit(f"At most {MOST_PACKAGES} are wanted.")
        site = next(environment.glob("lib/python*/site-packages"))
        (site / "no_network.pth").write_text("import no_network\n")
        (site / "no_network.py").write_text(NO_NETWORK)
        folder.mkdir()
        clean = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        for words in COMMANDS:
            started = time.monotonic()
            subprocess.run(
                [str(environment / "bin" / "attnscope"), *words], cwd=folder, env=clean, check=True
            )
            print(f"attnscope {' '.join(words)}: {time.monotonic() - started:.1f} s", flush=True)
        for name in ("attnscope-demo.html", "report.html"):
            page = (folder / name).read_text(encoding="utf-8")
            if "vega" not in page or len(page) < 500_000:
                sys.exit(f"{name} lacks the scripts of its figures.")


if __name__ == "__main__":
    main()
