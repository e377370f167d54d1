"""tf.data with a fixed number of threads: decodes only the crop's window, and resizes without antialiasing."""

import os

import serving
from serving import MEAN, STD

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""


class Contender:
    def __init__(self, work):
        import numpy as np
        import tensorflow as tf
        tf.config.threading.set_intra_op_parallelism_threads(1)
        tf.config.threading.set_inter_op_parallelism_threads(work.num_workers)
        self.work, self.tf = work, tf
        self.current = tf.Variable(0, dtype=tf.int64)
        if work.orders is not None:
            self.orders = tf.constant(np.array(work.orders))
        if work.pictures:
            self.paths, self.labels = tf.constant(work.paths), tf.constant(work.labels, tf.int64)
            self.crops = tf.constant(np.array(work.crops))
            self.shift = tf.constant([255 * value for value in MEAN])
            self.scale = tf.constant([1 / (255 * value) for value in STD])
        elif work.kind != "straggler":
            self.rows = tf.constant(work.rows)
        self.dataset = self.build()
        self.settings = f"tensorflow {tf.__version__}, {work.num_workers} private threads, num_parallel_calls {work.num_workers}"

    def build(self):
        tf, work = self.tf, self.work
        if work.kind in ("tiny", "tensor"):
            dataset = tf.data.Dataset.range(work.items).batch(work.batch_size).map(
                self.rows_at, num_parallel_calls=work.num_workers, deterministic=True)
        else:
            item = self.picture if work.pictures else self.straggler
            dataset = tf.data.Dataset.range(work.items).map(
                item, num_parallel_calls=work.num_workers, deterministic=True).batch(work.batch_size)
        options = tf.data.Options()
        options.threading.private_threadpool_size = work.num_workers
        options.threading.max_intra_op_parallelism = 1
        return dataset.prefetch(2).with_options(options)

    def index(self, position):
        tf = self.tf
        return position if self.work.orders is None else tf.gather(self.orders[self.current % self.work.epochs], position)

    def picture(self, position):
        tf, side = self.tf, self.work.side
        index = self.index(position)
        crop = self.crops[self.current % self.work.epochs, index]
        image = tf.io.decode_and_crop_jpeg(tf.io.read_file(self.paths[index]), tf.gather(crop, [1, 0, 3, 2]), channels=3)
        image = tf.image.resize(image, [side, side])   # bilinear, without antialiasing
        image = tf.cond(crop[4] > 0, lambda: tf.reverse(image, [1]), lambda: image)
        return tf.transpose((image - self.shift) * self.scale, [2, 0, 1]), self.labels[index]

    def rows_at(self, positions):
        indices = self.index(positions)
        return self.tf.gather(self.rows, indices), indices

    def straggler(self, position):
        tf = self.tf
        index = self.index(position)

        def wait(number):
            serving.straggle(int(number))
            return number

        index = tf.numpy_function(wait, [index], tf.int64)
        index.set_shape([])
        return tf.fill([4], tf.cast(index, tf.float32)), index

    def epoch(self, epoch):
        self.current.assign(epoch)
        return self.dataset

    def count(self, batch):
        return batch[1].shape[0]

    def arrays(self, batch):
        return batch[0].numpy(), batch[1].numpy().tolist()


serving.serve(Contender)
