"""DALI without a GPU: its own reader, the decoder fused with the crop, antialiased linear resize. It runs ahead of the reader by
design, so it goes through the plan's epochs one after the other, whichever is asked for."""

import serving
from serving import MEAN, STD


class Contender:
    def __init__(self, work):
        import numpy as np
        import nvidia.dali as dali
        from nvidia.dali import fn, types
        self.work = work
        order = np.array(work.orders).reshape(-1)
        epochs = np.repeat(np.arange(work.epochs), work.items)
        crops = np.array(work.crops)[epochs, order]
        corners, sizes, flips = (np.ascontiguousarray(part) for part in (crops[:, 0:2], crops[:, 2:4], crops[:, 4]))

        def chances():
            while True:
                for at in range(0, len(crops), work.batch_size):
                    yield tuple(part[at:at + work.batch_size] for part in (corners, sizes, flips))

        @dali.pipeline_def(batch_size=work.batch_size, num_threads=work.num_workers, device_id=None, prefetch_queue_depth=2)
        def pictures():
            jpegs, labels = fn.readers.file(files=[work.paths[index] for index in order],
                                            labels=[work.labels[index] for index in order], prefetch_queue_depth=2)
            corner, size, flip = fn.external_source(chances(), num_outputs=3, batch=True)
            images = fn.decoders.image_slice(jpegs, corner, size, axis_names="WH", output_type=types.RGB)
            images = fn.resize(images, size=[work.side, work.side], interp_type=types.INTERP_LINEAR)
            images = fn.crop_mirror_normalize(images, mirror=flip, dtype=types.FLOAT, output_layout="CHW",
                                              mean=[255 * value for value in MEAN], std=[255 * value for value in STD])
            return images, labels

        self.pipeline = pictures()
        self.pipeline.build()
        self.settings = f"DALI {dali.__version__}, CPU only"

    def epoch(self, _):
        for _ in range(self.work.batches):
            yield self.pipeline.run()

    def count(self, batch):
        return len(batch[1])

    def arrays(self, batch):
        return batch[0].as_array(), batch[1].as_array().reshape(-1).tolist()


serving.serve(Contender)
