"""A PostgreSQL server for the tests: a cluster in a temporary folder, on a unix socket alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def find_binaries() -> Path | None:
    """Return the folder with `initdb` and `pg_ctl`; Debian keeps it out of the path."""
    if sys.platform == "win32":
        return None
    found = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda folder: [int(part) for part in folder.parent.name.split(".") if part.isdigit()],
        reverse=True,
    )
    if shutil.which("pg_config"):
        ran = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True)
        found.append(Path(ran.stdout.strip()))
    for folder in found:
        if all((folder / name).is_file() for name in ("initdb", "pg_ctl", "postgres")):
            return folder
    return None


def address(folder: Path, **settings: str) -> str:
    """Return what to connect to: the socket in `folder`, and the settings of the session."""
    options = " ".join(f"-c {name}={value}" for name, value in settings.items())
    return (
        f"host={folder} dbname=postgres user={folder.owner()} connect_timeout=20 "
        f"options='{options}'"
    )


class Server:
    """A cluster that can be stopped and started again; `close` removes it."""

    def __init__(self, binaries: Path) -> None:
        self.binaries = binaries
        # In a folder of its own, because the path of a socket has at most 107 characters.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self.own(self.folder)
        self._data = str(self.folder / "data")
        try:
            self._call("initdb", "-D", self._data, "-E", "UTF8", "--locale=C", "-A", "trust", "-N")
            self.start()
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise

    def address(self, schema: str = "public") -> str:
        """Return what to connect to; the tables are in this schema."""
        return address(self.folder, search_path=schema)

    def own(self, folder: Path) -> None:
        """Give a folder to whoever runs the server."""
        if os.getuid() == 0:  # the server refuses to run as root
            shutil.chown(folder, "postgres")

    def start(self) -> None:
        options = (
            f"-c listen_addresses='' -c unix_socket_directories={self.folder} -c fsync=off "
            "-c max_connections=100 -c shared_buffers=16MB"
        )
        log = str(self.folder / "log")
        self._call("pg_ctl", "start", "-w", "-t", "60", "-D", self._data, "-l", log, "-o", options)

    def stop(self) -> None:
        self._call("pg_ctl", "stop", "-w", "-t", "60", "-m", "fast", "-D", self._data)

    def close(self) -> None:
        try:
            if (self.folder / "data" / "postmaster.pid").exists():
                self._call("pg_ctl", "stop", "-w", "-t", "60", "-m", "immediate", "-D", self._data)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, program: str, *arguments: str) -> None:
        as_user: dict[str, Any] = {}
        if os.getuid() == 0:
            as_user = {"user": "postgres", "group": "postgres", "extra_groups": []}
        subprocess.run(
            [str(self.binaries / program), *arguments],
            check=True,
            timeout=120,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **as_user,
        )
