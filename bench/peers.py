#!/usr/bin/env python3
"""Installs the Python loaders that `bench loader` measures drawpoint against, each into an environment of its own under
.deps/peers, so that one that cannot be had keeps no other from being measured. .deps/peers/REASONS.json says of each
environment null, or why it is not there. Run again, it does only what is missing.
usage: peers.py [ENVIRONMENT...] [--again]"""

import argparse
import glob
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / ".deps/peers"
REASONS = FOLDER / "REASONS.json"

FAST = ["numpy", "pillow", "simplejpeg==1.9.0", "opencv-python-headless"]   # what an informed user decodes with
# `alone`: installed without its requirements, since these are a CUDA build's. `check`: must run, or the environment is of
# no use. `python`: the oldest that will do.
ENVIRONMENTS = {
    "torch": {"packages": [*FAST, "requests"], "alone": ["torchvision==0.28.0", "torchdata==0.11.0"], "torch": "2.13.0",
              "check": "import torch, PIL, simplejpeg, cv2, torchdata.nodes"},
    "spdl": {"packages": ["spdl==0.8.0", *FAST], "debian": "libavdevice59",   # it loads the system's FFmpeg
             "check": "import spdl.io, spdl.pipeline, simplejpeg, cv2"},
    "tensorflow": {"packages": ["tensorflow-cpu==2.21.0"], "check": "import tensorflow"},
    "dali": {"packages": ["numpy", "astunparse", "gast", "six", "dm-tree", "packaging", "makefun", "optree"],
             "alone": ["nvidia-dali-cuda120==2.4.0", "nvidia-nvimgcodec-cu12", "nvidia-libnvcomp-cu12"],
             "check": "import nvidia.dali.fn"},
    "grain": {"packages": ["grain==0.2.18", *FAST], "check": "import grain, PIL"},
    "dataloader-rs": {"packages": ["dataloader-rs==0.2.0", *FAST], "python": (3, 13),
                      "check": "import dataloader_rs, simplejpeg, cv2"},
}


class NotInstalled(Exception):
    """Why an environment is not there, in one line."""


def say(text):
    print("peers:", text, file=sys.stderr)


def run(log, *command):
    """Runs a command into the log; its last telling line is the reason when it fails."""
    try:
        with open(log, "a") as file:
            code = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=file,
                                  stderr=file).returncode
    except OSError as error:
        raise NotInstalled(f"{command[0]}: {error.strerror}")
    if code:
        lines = [line.strip() for line in Path(log).read_text(errors="replace").splitlines() if line.strip()]
        telling = [line for line in lines if re.match(r"(ERROR|error|E|\w*Error):", line)] or lines or ["no message"]
        raise NotInstalled(f"{' '.join(str(word) for word in command[1:4])}: {telling[-1][:300]}")


def version_of(python):
    """(major, minor) of a Python that can make environments, else None."""
    code = "import ensurepip, venv, sys; print(*sys.version_info[:2])"
    try:
        words = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=60).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return None
    return tuple(int(word) for word in words) if len(words) == 2 else None


def find_python(oldest):
    """A Python of at least this version that can make environments."""
    newer = [f"python3.{minor}" for minor in range(oldest[1], oldest[1] + 5)] if oldest[1] else []
    pyenv = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    for name in [sys.executable, "/usr/bin/python3", *newer, *sorted(glob.glob(f"{pyenv}/versions/3.*/bin/python3"))]:
        path = shutil.which(name)
        version = version_of(path) if path else None
        if version and version >= oldest:
            return path
    wanted = f"CPython {oldest[0]}.{oldest[1]} or newer" if oldest[1] else "python3 with venv (Debian: python3-venv)"
    raise NotInstalled(f"no {wanted} here")


def install_debian(log, package):
    """By apt-get where that is allowed; else the check says what is missing."""
    if not shutil.which("dpkg-query"):
        return
    status = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Abbrev}", package], capture_output=True, text=True)
    if status.stdout.startswith("ii"):
        return
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    apt = [*root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "-y", "-o", "DPkg::Lock::Timeout=600"]
    say(f"installing Debian's {package}")
    try:
        try:
            run(log, *apt, "install", "--no-install-recommends", package)
        except NotInstalled:
            run(log, *apt, "update")
            run(log, *apt, "install", "--no-install-recommends", package)
    except NotInstalled as reason:
        say(f"Debian's {package} could not be installed ({reason})")


def provide_torch(log, environment, python, version):
    """The torch that drawpoint is built with if it is this version for this Python, else one of its own."""
    pip = [environment / "bin/python3", "-m", "pip", "install", "--quiet"]
    minor = "python{}.{}".format(*version_of(python))
    packages = Path(os.environ.get("DRAWPOINT_TORCH_DIR", "") or ".").resolve().parents[2:3]
    if packages and packages[0].parent.name == minor and glob.glob(f"{packages[0]}/torch-{version}*.dist-info"):
        site = environment / "lib" / minor / "site-packages"
        (site / "drawpoint_torch.pth").write_text(f"{packages[0]}\n")
    else:
        wishes = os.environ.get("DRAWPOINT_TORCH_PIP_ARGS", "").split()
        run(log, *pip, *wishes, "--no-deps", f"torch=={version}")
        if list(environment.glob("lib/python3*/site-packages/torch/lib/libtorch_cuda.so")):
            raise NotInstalled("pip brought a CUDA build of torch: DRAWPOINT_TORCH_PIP_ARGS can lead it to the CPU build")
    run(log, *pip, "filelock", "typing-extensions", "sympy", "networkx", "jinja2", "fsspec")


def install(name, wishes, environment, log):
    python = find_python(wishes.get("python", (3, 0)))
    run(log, python, "-m", "venv", environment)
    if "debian" in wishes:
        install_debian(log, wishes["debian"])
    pip = [environment / "bin/python3", "-m", "pip", "install", "--quiet"]
    if "torch" in wishes:
        provide_torch(log, environment, python, wishes["torch"])
    run(log, *pip, *wishes["packages"])
    if "alone" in wishes:
        run(log, *pip, "--no-deps", *wishes["alone"])
    run(log, environment / "bin/python3", "-c", wishes["check"])


def main():
    parser = argparse.ArgumentParser(description="Installs the Python loaders that bench loader measures against.")
    parser.add_argument("environments", nargs="*", metavar="ENVIRONMENT", help=f"of {', '.join(ENVIRONMENTS)} [all]")
    parser.add_argument("--again", action="store_true", help="remove and install also what is there")
    arguments = parser.parse_args()
    unknown = set(arguments.environments) - set(ENVIRONMENTS)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(ENVIRONMENTS)}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    reasons = json.loads(REASONS.read_text()) if REASONS.exists() else {}
    for name in arguments.environments or ENVIRONMENTS:
        wishes, environment, log = ENVIRONMENTS[name], FOLDER / name, FOLDER / f"{name}.log"
        stamp, digest = environment / "complete", hashlib.sha256(json.dumps(wishes).encode()).hexdigest()
        if stamp.exists() and stamp.read_text() == digest and not arguments.again:
            say(f"{name}: there")
            continue
        say(f"{name}: installing")
        shutil.rmtree(environment, ignore_errors=True)
        log.unlink(missing_ok=True)
        try:
            install(name, wishes, environment, log)
            stamp.write_text(digest)
            reasons[name] = None
        except NotInstalled as reason:
            reasons[name] = str(reason)
        say(f"{name}: {reasons[name] or 'installed'}")
        REASONS.write_text(json.dumps(reasons, indent=2) + "\n")
    print(json.dumps(reasons, indent=2))


if __name__ == "__main__":
    main()
