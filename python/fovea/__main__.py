"""python -m fovea: the command line."""

import signal
import sys

from ._fovea import run_program


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the program has its own handlers
    return run_program(sys.argv[1:], [sys.executable, "-m", "fovea"])


if __name__ == "__main__":
    sys.exit(main())
