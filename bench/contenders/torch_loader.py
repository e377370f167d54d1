"""PyTorch's DataLoader with persistent workers: torchvision's transforms on Pillow (persistent, unordered), or simplejpeg and
OpenCV (fast)."""

import serving


class Contender:
    def __init__(self, work):
        import torch
        from items import versions
        from torch_items import Items
        torch.set_num_threads(1)
        self.work, self.items = work, Items(work)
        self.order = Order(work)
        in_order = {} if work.order == "in" else {"in_order": False}
        self.loader = torch.utils.data.DataLoader(self.items, batch_size=work.batch_size, sampler=self.order,
                                                  num_workers=work.num_workers, persistent_workers=True, **in_order)
        decoder = versions("simplejpeg", "opencv-python-headless") if work.variant == "fast" else versions("torchvision", "pillow")
        self.settings = f"torch {torch.__version__}, {decoder}, torch threads {torch.get_num_threads()}"

    def epoch(self, epoch):
        self.items.epoch[0] = epoch
        self.order.epoch = epoch
        return self.loader

    def count(self, batch):
        return len(batch[1])

    def arrays(self, batch):
        return batch[0].numpy(), batch[1].tolist()


class Order:
    """A sampler: the plan's order."""

    def __init__(self, work):
        self.work, self.epoch = work, 0

    def __iter__(self):
        return iter(self.work.indices(self.epoch))

    def __len__(self):
        return self.work.items


serving.serve(Contender)
