"""torchdata.nodes: a sampler, batches of indices, and threads that make whole batches."""

import serving


class Contender:
    def __init__(self, work):
        import torch
        from items import versions
        from torch_items import Items
        torch.set_num_threads(1)
        self.work, self.items, self.collate = work, Items(work), torch.utils.data.default_collate
        self.settings = versions("torch", "torchdata") + (", " + versions("torchvision", "pillow") if work.pictures else "")

    def make(self, indices):
        return self.collate([self.items[index] for index in indices])

    def epoch(self, epoch):
        from torchdata.nodes import IterableWrapper, Loader, ParallelMapper, Prefetcher
        self.items.epoch[0] = epoch
        indices = IterableWrapper(self.work.index_batches(epoch))
        batches = ParallelMapper(indices, self.make, num_workers=self.work.num_workers, method="thread")
        return Loader(Prefetcher(batches, prefetch_factor=2))

    def count(self, batch):
        return len(batch[1])

    def arrays(self, batch):
        return batch[0].numpy(), batch[1].tolist()


serving.serve(Contender)
