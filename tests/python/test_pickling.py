"""Sources and loaders go to other processes: what made them travels, threads and recordings do not."""

import multiprocessing
import os
import pickle

import numpy
import pytest
from conftest import DATA, SAMPLES, TARGETS

import drawpoint

PIL = pytest.importorskip("PIL.Image")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("photos")
    chance = numpy.random.default_rng(3)
    for number in range(12):
        (folder / f"class{number % 3}").mkdir(exist_ok=True)
        PIL.fromarray(chance.integers(0, 255, (40, 50, 3), dtype=numpy.uint8)).save(folder / f"class{number % 3}/{number}.jpg")
    return folder


def recipes(photos, folder):
    numpy.save(folder / "data.npy", (DATA * 8).astype(numpy.uint8).reshape(SAMPLES, 4))
    numpy.save(folder / "targets.npy", TARGETS)
    images = drawpoint.ImageFolder(photos)
    npy = drawpoint.npy(folder / "data.npy", folder / "targets.npy")
    return {
        "rows": drawpoint.rows(DATA, TARGETS), "rows without targets": drawpoint.rows(DATA), "npy": npy,
        "to_float": npy.to_float(), "random crops": images | drawpoint.decode_image | drawpoint.RandomResizedCrop(16)
        | drawpoint.RandomHorizontalFlip(0.25) | drawpoint.Normalize([0.1, 0.2, 0.3], [0.4, 0.5, 0.6]),
        "centre, bytes": images | drawpoint.decode_jpeg | drawpoint.CenterCrop((12, 20), 0.5) | drawpoint.to_uint8}


def epoch_of(loader):
    return [tuple(numpy.array(part) for part in batch) for batch in loader]


def are_same(ones, others):
    return len(ones) == len(others) > 0 and all(
        numpy.array_equal(a, b) for one, other in zip(ones, others) for a, b in zip(one, other))


@pytest.mark.parametrize("name", ["rows", "rows without targets", "npy", "to_float", "random crops", "centre, bytes"])
def test_a_pickled_loader_draws_the_same(name, photos, tmp_path):
    source = recipes(photos, tmp_path)[name]
    options = {"batch_size": 5, "shuffle": True, "num_workers": 2, "seed": 9, "as_": "numpy"}
    with drawpoint.DataLoader(source, **options) as loader, pickle.loads(pickle.dumps(loader)) as other:
        assert other.dataset.stages == loader.dataset.stages
        for _ in range(2):
            assert are_same(epoch_of(loader), epoch_of(other))
    assert pickle.loads(pickle.dumps(source)).stages == source.stages


def test_the_data_set_itself_travels(photos):
    images = pickle.loads(pickle.dumps(drawpoint.ImageFolder(photos)))
    assert images.classes == ["class0", "class1", "class2"] and len(images) == 12
    decoded = pickle.loads(pickle.dumps(images | drawpoint.decode_image))
    assert len(decoded | drawpoint.CenterCrop(8)) == 12
    assert pickle.loads(pickle.dumps(drawpoint.decode_image)) is drawpoint.decode_image


def test_it_goes_on_where_the_loader_is_and_records_nothing(tmp_path):
    file = tmp_path / "run.pftrace"
    with drawpoint.DataLoader(drawpoint.rows(DATA, TARGETS), 8, num_workers=1, as_="numpy", record=file) as loader:
        drawn = iter(loader)
        for _ in range(4):
            next(drawn)
        with pickle.loads(pickle.dumps(loader)) as other:
            assert are_same(epoch_of(other), epoch_of(drawn))
            with pytest.raises(Exception, match="record"):
                other.report()


def draws_in_child(loader, answers):
    answers.put((os.getpid(), epoch_of(loader)))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_started_process_draws_beside_the_live_loader(method, tmp_path):
    context = multiprocessing.get_context(method)
    answers = context.Queue()
    with drawpoint.DataLoader(drawpoint.rows(DATA, TARGETS), 8, shuffle=True, num_workers=2, as_="numpy") as loader:
        drawn = iter(loader)
        next(drawn)
        child = context.Process(target=draws_in_child, args=(loader, answers))
        child.start()
        pid, batches = answers.get(timeout=60)
        child.join(60)
        assert child.exitcode == 0 and pid != os.getpid()
        assert are_same(batches, epoch_of(drawn))
