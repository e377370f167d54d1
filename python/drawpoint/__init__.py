"""drawpoint: says why a training loop waits for data, and loads it faster.

    for images, labels in drawpoint.watch(loader, "run.pftrace"):   # then: drawpoint diagnose run.pftrace
        ...

    photos = drawpoint.ImageFolder("train")
    recipe = photos | drawpoint.decode_image | drawpoint.RandomResizedCrop(224) | drawpoint.Normalize.imagenet()
    for images, labels in drawpoint.DataLoader(recipe, batch_size=64, shuffle=True, num_workers=4):
        ...
"""

from ._core import (ArraySource, CenterCrop, DecodedImages, ImageFolder, ImageSource, Normalize,
                    RandomHorizontalFlip, RandomResizedCrop, Recording, SampleError, Source, TarShards, __version__,
                    decode_image, decode_jpeg, idx, npy, to_uint8)
from .loader import DataLoader, rows
from .watching import watch

__all__ = ["ArraySource", "CenterCrop", "DataLoader", "DecodedImages", "ImageFolder", "ImageSource", "Normalize",
           "RandomHorizontalFlip", "RandomResizedCrop", "Recording", "SampleError", "Source", "TarShards", "Tuned",
           "__version__", "decode_image", "decode_jpeg", "idx", "npy", "rows", "to_uint8", "tune", "watch"]


def __getattr__(name):
    if name in ("fastai", "lightning", "torch"):   # imports what it hangs into
        import importlib
        return importlib.import_module(f"drawpoint.{name}")
    if name in ("Tuned", "tune"):   # whose imports take a while
        from . import tuning
        return getattr(tuning, name)
    raise AttributeError(f"module 'drawpoint' has no attribute {name!r}")
