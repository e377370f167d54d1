"""The suite in Python that python_suite_test.cpp runs."""

import sys
import time

from drawpoint_suite import Suite, Task


class Counting(Task):
    def __init__(self):
        self.sum = 0

    def run(self, number):
        self.sum += number

    def metrics(self):
        return [("sum of numbers", "count", self.sum)]


def broken():
    raise RuntimeError("no such disk")


def fails_later(runs=[]):
    runs.append(1)
    if len(runs) == 4:   # the third run that counts
        raise RuntimeError("the disk is full")


class Opening(Task):
    """Opens a file, which must not get the number of the channel to the parent."""

    def __init__(self):
        self.file = open(sys.argv[0])

    def run(self, number):
        if self.file.fileno() == 3:
            raise RuntimeError("the channel was taken by a file")


def batches():
    return [([at, at + 1], [0, 1]) for at in range(0, 10, 2)]


words = [word for word in sys.argv[1:] if word != "own"]   # an option of its own
print("something of the user's own")
suite = Suite("rows in Python")
suite.add_task("counts", Counting).add_task("broken", broken).add_function("fails later", fails_later)
suite.add_function("short", lambda: time.sleep(0.001), items=10, digest=lambda: 7)
suite.add_function("long", lambda: time.sleep(0.005), items=10, digest=lambda: 8)
suite.add_loader("loader", batches, digest=lambda batch: sum(batch[0]))
suite.add_task("opens", Opening).add_loader("once only", lambda: iter(batches()))
suite.add_loader("backwards", lambda: batches()[::-1], digest=lambda batch: sum(batch[0]))
suite.main(words)
