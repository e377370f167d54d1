#!/usr/bin/env python3
"""The loader from Python beside the same loader from C++ and PyTorch's, on a folder of photographs: RandomResizedCrop(224), flip,
normalise, batches of 64, 2 workers, recording on. Rounds in an order drawn anew; images a second, and CPU time an image
while recording, as ratios to C++ with their ranges. PyTorch's samples are made by Pillow, as torchvision makes them. Then tiny
rows: a draw.
usage: ./run bench python --data FOLDER [--rounds 7] [--epochs 6] [--as torch|numpy|jax] [--no-pytorch]"""

import argparse
import importlib.metadata
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import drawpoint

PROGRAM = os.environ["DRAWPOINT_PROGRAM"]
MEAN, DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class Photos:   # a data set by index
    def __init__(self, folder):
        classes = sorted(one for one in Path(folder).iterdir() if one.is_dir())
        self.files = [(str(file), label) for label, one in enumerate(classes) for file in sorted(one.rglob("*.jp*g"))]

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        from PIL import Image
        import numpy
        import torch
        file, label = self.files[index]
        image = Image.open(file).convert("RGB")
        area = image.width * image.height
        for _ in range(10):
            share = random.uniform(0.08, 1.0) * area
            ratio = 2.718281828 ** random.uniform(-0.28768207, 0.28768207)
            width, height = round((share * ratio) ** 0.5), round((share / ratio) ** 0.5)
            if 0 < width <= image.width and 0 < height <= image.height:
                break
        else:
            width = height = min(image.size)
        left, top = random.randint(0, image.width - width), random.randint(0, image.height - height)
        image = image.crop((left, top, left + width, top + height)).resize((224, 224), Image.BILINEAR)
        if random.random() < 0.5:
            image = image.transpose(Image.FLIP_LEFT_RIGHT)
        pixels = torch.from_numpy(numpy.asarray(image).copy()).permute(2, 0, 1).float() / 255
        return (pixels - torch.tensor(MEAN)[:, None, None]) / torch.tensor(DEVIATION)[:, None, None], label


def cpu_s(record):
    """CPU time of the process while it recorded: without starting, and without the C++ side's verdict."""
    subprocess.run([PROGRAM, "export", record, "--to", "json", "-o", record + ".json"], capture_output=True, check=True)
    rows = json.loads(Path(record + ".json").read_text())["host"]
    return (rows[-1]["own_cpu_ns"] - rows[0]["own_cpu_ns"]) / 1e9


def of_cpp(folder, epochs, record, arrays):
    said = subprocess.run([PROGRAM, "profile", "--data", folder, "--model", "none", "--epochs", str(epochs),
                           "--batch-size", "64", "--image-size", "224", "--num-workers", "2", "--prefetch-depth", "4",
                           "-o", record, "--json"], capture_output=True, text=True, check=True)
    run = json.loads(said.stdout)["run"]
    return run["samples"] / run["wall_s"], cpu_s(record) / run["samples"]


def iterated(loader, epochs):
    """Images, and how many a second."""
    begin = time.perf_counter()
    images = sum(len(labels) for _ in range(epochs) for batch, labels in loader)
    return images, images / (time.perf_counter() - begin)


def of_python(folder, epochs, record, arrays):
    recipe = drawpoint.ImageFolder(folder) | drawpoint.decode_image | drawpoint.RandomResizedCrop(224) \
        | drawpoint.RandomHorizontalFlip() | drawpoint.Normalize.imagenet()
    with drawpoint.DataLoader(recipe, 64, shuffle=True, num_workers=2, prefetch_depth=4, epochs=epochs,
                              record=record, as_=arrays) as loader:
        images, rate = iterated(loader, epochs)
    return rate, cpu_s(record) / images


def of_pytorch(folder, epochs, record, arrays):
    import torch.utils.data as data
    loader = data.DataLoader(Photos(folder), 64, shuffle=True, num_workers=2, persistent_workers=True)
    return iterated(loader, 1)[1], None


def tell(what, values, asked):
    values = sorted(values)
    print(f"{what:44} {statistics.median(values):.3f} ({values[0]:.3f} … {values[-1]:.3f}){asked}", flush=True)


def tiny_rows(arrays, count=20000):
    import numpy
    rows = drawpoint.rows(numpy.random.rand(64 * 64, 4).astype(numpy.float32), numpy.arange(64 * 64))
    for record in (None, "tiny.pftrace"):
        with tempfile.TemporaryDirectory() as folder:
            loader = drawpoint.DataLoader(rows, 64, record=record and os.path.join(folder, record), num_workers=1,
                                          prefetch_depth=55, as_=arrays)
            times = []
            while len(times) < count:
                drawn = iter(loader)
                while True:
                    begin = time.perf_counter_ns()
                    batch = next(drawn, None)
                    if batch is None:
                        break
                    times.append(time.perf_counter_ns() - begin)
                    del batch
            loader.close()
        tell(f"a draw of 64 rows, both arrays{', recorded' if record else ''}: µs",
             [statistics.median(times[i::20]) / 1e3 for i in range(20)], ", at most 5 asked")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", required=True, help="a folder of photographs, one folder a class")
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--epochs", type=int, default=6)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--as", dest="arrays", choices=("torch", "numpy", "jax"), default="torch",
                         help="whose arrays our loader draws")
    options.add_argument("--no-pytorch", action="store_true", help="without PyTorch's loader")
    options = options.parse_args()
    contenders = {"C++": of_cpp, "Python": of_python} | ({} if options.no_pytorch else {"PyTorch": of_pytorch})
    chance, rounds = random.Random(options.seed), []
    version = importlib.metadata.version(options.arrays)
    print(f"{os.cpu_count()} cores, {options.arrays} {version}, Python {sys.version.split()[0]}, {options.rounds} rounds")
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(options.rounds):
            order = list(contenders)
            chance.shuffle(order)
            rounds.append({name: contenders[name](options.data, options.epochs, os.path.join(folder, f"{turn}.pftrace"),
                                                  options.arrays) for name in order})
    for name in contenders:
        tell(f"{name}: images/s", [one[name][0] for one in rounds], "")
    tell("Python / C++, images/s", [one["Python"][0] / one["C++"][0] for one in rounds], ", at least 0.97 asked")
    tell("Python / C++, CPU time an image", [one["Python"][1] / one["C++"][1] for one in rounds], ", 0.98 to 1.02 asked")
    if not options.no_pytorch:
        tell("Python / PyTorch, images/s", [one["Python"][0] / one["PyTorch"][0] for one in rounds], ", at least 7.5 asked")
    tiny_rows(options.arrays)


if __name__ == "__main__":
    main()
