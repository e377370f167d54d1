"""SPDL: threads that make whole batches. `batch` decodes, crops and scales by FFmpeg through spdl.io; `batch_fast` by simplejpeg
and OpenCV."""

import numpy as np

import serving
from serving import MEAN, STD


class Contender:
    def __init__(self, work):
        from items import versions, with_simplejpeg
        from numpy_items import Items
        self.work, self.items = work, Items(work, with_simplejpeg)
        self.make = self.decode if work.pictures and work.variant == "batch" else self.items.batch
        self.settings = versions("spdl", "numpy") + (
            ", " + versions("simplejpeg", "opencv-python-headless") if work.variant == "batch_fast" else "")

    def decode(self, indices):
        import spdl.io
        work, frames = self.work, []
        for index in indices:
            x, y, width, height, flip = work.crop(self.items.epoch, index)
            mirror = ",hflip" if flip else ""
            chain = f"crop={width}:{height}:{x}:{y}:exact=1{mirror},scale={work.side}:{work.side}:flags=bilinear,format=rgb24"
            frames.append(spdl.io.decode_packets(spdl.io.demux_image(work.paths[index]), filter_desc=chain))
        pixels = spdl.io.to_numpy(spdl.io.convert_frames(frames))
        values = np.empty((len(indices), 3, work.side, work.side), np.float32)
        for channel in range(3):
            np.multiply(pixels[..., channel], np.float32(1 / (255 * STD[channel])), out=values[:, channel])
            values[:, channel] -= np.float32(MEAN[channel] / STD[channel])
        return values, [work.labels[index] for index in indices]

    def epoch(self, epoch):
        from spdl.pipeline import PipelineBuilder
        workers = self.work.num_workers
        self.items.epoch = epoch
        pipeline = (PipelineBuilder().add_source(self.work.index_batches(epoch))
                    .pipe(self.make, concurrency=workers, output_order="input").add_sink(2).build(num_threads=workers))
        with pipeline.auto_stop():
            yield from pipeline

    def count(self, batch):
        return len(batch[1])

    def arrays(self, batch):
        return batch


serving.serve(Contender)
