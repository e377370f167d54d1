"""dataloader-rs: threads in Rust. `fast` makes pictures with simplejpeg and OpenCV; `getitems` serves each batch of rows by one
gather, the best case that its interface allows."""

import serving


class Contender:
    def __init__(self, work):
        import dataloader_rs
        from items import versions, with_simplejpeg
        from numpy_items import Items, stacked
        items = Items(work, with_simplejpeg)

        class Dataset(dataloader_rs.PyDataset):
            def __len__(self):
                return work.items

            def __getitem__(self, index):
                return items(index)

        class Batched(Dataset):
            def __getitems__(self, indices):   # as many as asked for, the first of which is the batch
                return [items.batch(indices)] + [None] * (len(indices) - 1)

        class Order:
            def __iter__(_):
                return iter(work.indices(items.epoch))

            def __len__(_):
                return work.items

        batched = work.variant == "getitems"
        self.items = items
        self.loader = dataloader_rs.PyDataloader(
            Batched() if batched else Dataset(), batch_size=work.batch_size, sampler=Order(), num_workers=work.num_workers,
            prefetch_depth=2, collate_fn=(lambda samples: samples[0]) if batched else stacked)
        self.settings = versions("dataloader-rs", "numpy") + (
            ", " + versions("simplejpeg", "opencv-python-headless") if work.pictures else "")

    def epoch(self, epoch):
        self.items.epoch = epoch
        return self.loader

    def count(self, batch):
        return len(batch[1])

    def arrays(self, batch):
        return batch


serving.serve(Contender)
