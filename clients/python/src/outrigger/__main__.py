"""``python -m outrigger``: the program itself, with its arguments."""

import os
import subprocess
import sys

from ._binary import find_binary
from ._errors import StartError


def main() -> int:
    """Runs the program in the place of this one; returns its exit code where the system cannot do that."""
    try:
        program = find_binary()
    except StartError as error:
        print(f"outrigger: {error}", file=sys.stderr)
        return 1
    if sys.platform == "win32":
        return subprocess.run([program, *sys.argv[1:]], check=False).returncode
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
