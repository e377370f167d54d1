#!/usr/bin/env python3
"""run_tests.py PYTHON PROGRAM: the Python package's tests in PYTHON's environment, with PROGRAM to read recordings."""

import os
import subprocess
import sys

python, program = sys.argv[1:]
if not os.path.exists(python):
    print(f"skipped: no {python}, which ./run test and ./run python make")
    sys.exit(77)
tests = os.path.dirname(os.path.abspath(__file__))
command = [python, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", tests]
sys.exit(subprocess.run(command, env={**os.environ, "DRAWPOINT_PROGRAM": program}).returncode)
