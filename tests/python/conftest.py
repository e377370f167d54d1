"""What several tests of the Python package need."""

import importlib
import importlib.util

import numpy
import pytest

import drawpoint

SAMPLES, BATCH = 100, 8
DATA = numpy.arange(SAMPLES * 4, dtype=numpy.float32).reshape(SAMPLES, 4)
TARGETS = numpy.arange(SAMPLES)


def is_right(batch):
    """Whether a batch of numpy arrays has the rows of its targets."""
    data, targets = batch
    return bool((data == DATA[targets]).all())


def imported(framework):
    """The module. The test is skipped if it is not installed, and fails if it is and cannot be imported."""
    if importlib.util.find_spec(framework.partition(".")[0]) is None:
        pytest.skip(f"{framework} is not installed")
    return importlib.import_module(framework)


@pytest.fixture
def make_loader():
    """Makes loaders of the same hundred rows."""
    loaders = []

    def make(**options):
        options = {"batch_size": BATCH, "as_": "numpy", **options}
        loaders.append(drawpoint.DataLoader(drawpoint.rows(DATA, TARGETS), **options))
        return loaders[-1]

    yield make
    for loader in loaders:
        loader.close()
