"""One item of each workload as a user of PyTorch writes it."""

import functools

import torch

from items import with_simplejpeg
from serving import MEAN, STD, straggle


@functools.cache
def import_torchvision():
    """torchvision's wheels want CUDA's libraries for their own operators; its transforms do not, once these are declared."""
    library = torch.library.Library("torchvision", "DEF")
    for operator in ("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
                     "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"):
        library.define(operator)
    import torchvision.transforms.functional as functional
    return functional, library   # the declarations live as long as the library


class Items(torch.utils.data.Dataset):
    """Index to (float32 tensor, target). `epoch` is set before each pass, where all workers see it."""

    def __init__(self, work):
        self.work = work
        self.epoch = torch.zeros(1, dtype=torch.int64).share_memory_()
        if work.pictures and work.variant != "fast":
            self.functional = import_torchvision()[0]
            from PIL import Image
            self.open = Image.open
        self.make = (self.row if work.kind in ("tiny", "tensor") else self.straggler if work.kind == "straggler" else
                     self.fast if work.variant == "fast" else self.pillow)
        if self.make == self.row:
            self.rows = torch.from_numpy(work.rows)

    def __len__(self):
        return self.work.items

    def __getitem__(self, index):
        return self.make(index)

    def pillow(self, index):
        work, functional = self.work, self.functional
        x, y, width, height, flip = work.crop(int(self.epoch), index)
        with self.open(work.paths[index]) as file:
            image = file.convert("RGB")
        image = functional.resized_crop(image, y, x, height, width, [work.side, work.side])
        if flip:
            image = functional.hflip(image)
        return functional.normalize(functional.to_tensor(image), MEAN, STD, inplace=True), work.labels[index]

    def fast(self, index):
        return torch.from_numpy(with_simplejpeg(self.work, int(self.epoch), index)), self.work.labels[index]

    def row(self, index):
        return self.rows[index], index

    def straggler(self, index):
        straggle(index)
        return torch.full((4,), float(index)), index
