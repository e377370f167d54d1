"""Grain: a MapDataset of whole batches read by threads, Pillow's decoder."""

import serving


class Contender:
    def __init__(self, work):
        import grain
        from items import versions, with_pillow
        from numpy_items import Items
        self.work, self.grain, self.items = work, grain, Items(work, with_pillow)
        self.settings = versions("grain", "numpy") + (", " + versions("pillow") if work.pictures else "")

    def epoch(self, epoch):
        from numpy_items import stacked
        grain, work = self.grain, self.work
        self.items.epoch = epoch
        batches = grain.MapDataset.source(work.indices(epoch)).map(self.items).batch(work.batch_size, batch_fn=stacked)
        return batches.to_iter_dataset(grain.ReadOptions(num_threads=work.num_workers, prefetch_buffer_size=2 * work.num_workers))

    def count(self, batch):
        return len(batch[1])

    def arrays(self, batch):
        return batch


serving.serve(Contender)
