"""python -m fovea: the command line."""

import signal
import sys

from ._fovea import run_program


def main() -> int:
    if sys.argv[1:2] == ["serve"] and any(each.split("=")[0] == "--jobs" for each in sys.argv):
        print(
            "fovea: error: --jobs: trains in processes of the program; expected it", file=sys.stderr
        )
        return 2
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the program has its own handlers
    return run_program(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
