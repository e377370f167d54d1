"""Whether the measurements of a device, and the stage they measure, include no library but LibTorch: they are compiled
on machines that have nothing else. Arguments: the compiler, the project's folder, LibTorch's include folders."""
import re
import subprocess
import sys
from pathlib import Path

SOURCES = ["bench/device/alone.cpp", "bench/device/stage_measures.cpp", "pipeline/torch/device_stage.cpp"]
LIBRARIES = ["asio", "boost", "tbb", "oneapi", "fmt", "CLI", "nlohmann", "protozero", "benchmark", "simdjson"]


def included(compiler, root, torch, source):
    command = [compiler, "-std=c++20", "-DNDEBUG", "-M", f"-I{root}", f"-I{root}/include"]
    command += [f"-isystem{folder}" for folder in torch] + [str(root / source)]
    rule = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return rule.replace("\\\n", " ").split(":", 1)[1].split()


def main():
    compiler, root, torch = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
    wrong = []
    for source in SOURCES:
        files = included(compiler, root, torch, source)
        assert any("ATen/core/Tensor.h" in file for file in files), f"{source}: LibTorch was not found"
        others = [file for file in files if not any(file.startswith(folder) for folder in [*torch, f"{root}/"])]
        wrong += [f"{source} includes {file}" for file in others
                  if re.search(rf"/({'|'.join(LIBRARIES)})/|/(asio|simdjson)\.h", file)]
    print("\n".join(wrong) or "they include LibTorch alone")
    sys.exit(1 if wrong else 0)


main()
