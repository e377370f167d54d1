"""drawpoint: a prefetching DataLoader that says why a training loop waits for data.

    photos = drawpoint.ImageFolder("train")
    recipe = photos | drawpoint.decode_image | drawpoint.RandomResizedCrop(224) | drawpoint.Normalize.imagenet()
    for images, labels in drawpoint.DataLoader(recipe, batch_size=64, shuffle=True, num_workers=4):
        ...
"""

from ._core import (ArraySource, CenterCrop, DecodedImages, ImageFolder, ImageSource, Normalize,
                    RandomHorizontalFlip, RandomResizedCrop, Recording, SampleError, Source, TarShards, __version__, decode_image,
                    decode_jpeg, idx, npy, rows, to_uint8)
from .loader import DataLoader
from .watching import watch

__all__ = ["ArraySource", "CenterCrop", "DataLoader", "DecodedImages", "ImageFolder", "ImageSource", "Normalize",
           "RandomHorizontalFlip", "RandomResizedCrop", "Recording", "SampleError", "Source", "TarShards", "__version__",
           "decode_image", "decode_jpeg", "idx", "npy", "rows", "to_uint8", "watch"]
