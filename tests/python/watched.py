"""Data sets and loaders that tests watch, and what was recorded of them."""

import dataclasses
import json
import os
import subprocess

import pytest
import torch
import torch.utils.data as data

SAMPLES, BATCH = 60, 8


def twice(x):
    return x * 2


class Noise:
    def __call__(self, x):
        return x + torch.rand(())


class Compose:
    def __init__(self, *transforms):
        self.transforms = list(transforms)

    def __call__(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x


class Rows(data.Dataset):
    def __init__(self):
        self.transform = Compose(twice, Noise())
        self.asked = []

    def __len__(self):
        return SAMPLES

    def __getitem__(self, index):
        self.asked.append(index)
        return self.transform(torch.full((4,), float(index))), index


class Together(Rows):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


class Stream(data.IterableDataset):
    def __iter__(self):
        info = data.get_worker_info()
        step = info.num_workers if info else 1
        for i in range(info.id if info else 0, SAMPLES, step):
            yield torch.full((4,), float(i)) + torch.rand(()), i


class Fails(Rows):
    def __getitem__(self, index):
        if index == 30:
            raise KeyError("no sample thirty")
        return super().__getitem__(index)


def loader(dataset=None, workers=2, **options):
    dataset = dataset or Rows()
    shuffle = not isinstance(dataset, data.IterableDataset)
    return data.DataLoader(dataset, BATCH, shuffle=shuffle, num_workers=workers,
                           generator=torch.Generator().manual_seed(5), **options)


def batches(of, passes=2):
    """The batches of some passes, copied."""
    torch.manual_seed(3)
    return [[part.clone() for part in batch] for _ in range(passes) for batch in of]


def same(left, right):
    return len(left) == len(right) and all(torch.equal(a, b) for x, y in zip(left, right) for a, b in zip(x, y))


def in_any_order(found):
    return sorted(found, key=lambda batch: sorted(batch[1].tolist()))


def ledger_of(file, tmp_path):
    """The rows of a recording, by the program if there is one."""
    program = os.environ.get("DRAWPOINT_PROGRAM") or "drawpoint"
    out = tmp_path / "run.json"
    try:
        subprocess.run([program, "export", str(file), "--to", "json", "-o", str(out)], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("there is no program drawpoint here, DRAWPOINT_PROGRAM would name it")
    return json.loads(out.read_text())


@dataclasses.dataclass(frozen=True)
class Frozen(data.Dataset):
    size: int = 20

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return torch.full((4,), float(index)), index
