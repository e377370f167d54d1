"""One item or one batch of each workload as a user of NumPy writes it, for loaders that want no torch."""

import numpy as np

from serving import straggle


class Items:
    """Index to (float32 array, target), with `picture` to make pictures. `epoch` is set before each pass."""

    def __init__(self, work, picture):
        self.work, self.picture, self.epoch = work, picture, 0

    def __call__(self, index):
        work = self.work
        if work.pictures:
            return self.picture(work, self.epoch, index), work.labels[index]
        if work.kind == "straggler":
            straggle(index)
            return np.full(4, index, np.float32), index
        return work.rows[index], index

    def batch(self, indices):
        """One gather where the rows are there already, else item by item."""
        if self.work.kind in ("tiny", "tensor"):
            return self.work.rows[indices], indices
        return stacked([self(index) for index in indices])


def stacked(items):
    return np.stack([item[0] for item in items]), [item[1] for item in items]
