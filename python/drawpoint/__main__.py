"""The program drawpoint: `drawpoint diagnose run.pftrace`, or `python -m drawpoint`."""

import os
import sys


def main():
    program = os.path.join(os.path.dirname(__file__), "bin", "drawpoint")
    os.execv(program, ["drawpoint", *sys.argv[1:]])


if __name__ == "__main__":
    main()
