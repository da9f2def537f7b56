"""Where the daemon's program is: named, beside this package, or on the PATH."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path

from ._errors import StartError

_NAME = "outrigger.exe" if sys.platform == "win32" else "outrigger"


def _folders(environment: Mapping[str, str]) -> Iterator[Path]:
    # Where pip put the command of this package: of this environment, of the user, or of `pip install --target`.
    yield Path(sysconfig.get_path("scripts"))
    yield Path(sysconfig.get_path("scripts", scheme=sysconfig.get_preferred_scheme("user")))
    yield Path(__file__).resolve().parents[1] / "bin"
    # A relative folder of the PATH is a place that a project can write.
    for folder in environment.get("PATH", "").split(os.pathsep):
        if os.path.isabs(folder):
            yield Path(folder)


def _is_program(path: Path) -> bool:
    # A script that pip or npm made would start an interpreter first.
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(2) != b"#!"


def find_binary(environment: Mapping[str, str] | None = None) -> str:
    """Returns the path of the program: what ``OUTRIGGER_BIN`` names, that of this package, or the first on the PATH.

    Raises ``StartError`` where there is none.
    """
    known = os.environ if environment is None else environment
    named = known.get("OUTRIGGER_BIN")
    if named:
        return named
    for folder in _folders(known):
        path = folder / _NAME
        if _is_program(path):
            return str(path)
    raise StartError(
        "not_found",
        "no Outrigger to start: this package was installed without a program for this system "
        f"({sysconfig.get_platform()}), and none is on the PATH; name one by OUTRIGGER_BIN or bin=",
    )
