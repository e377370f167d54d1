"""Batches, epochs, ranks, options, errors."""

import subprocess
import sys

import numpy
import pytest
from conftest import DATA, SAMPLES, TARGETS, is_right

import drawpoint


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("order", ["in", "out", 2])
def test_each_epoch_has_each_sample_once(make_loader, workers, order):
    loader = make_loader(num_workers=workers, order=order, shuffle=True, seed=7)
    orders = []
    for _ in range(3):
        batches = [(data.copy(), targets.copy()) for data, targets in loader]
        assert all(map(is_right, batches))
        seen = numpy.concatenate([targets for _, targets in batches])
        assert sorted(seen) == list(range(SAMPLES))
        orders.append(seen.tolist())
    assert orders[0] != orders[1] != orders[2]
    assert len(loader) == 13


def test_the_order_is_that_of_the_seed_and_the_epoch(make_loader):
    first = make_loader(shuffle=True, seed=3)
    second = make_loader(shuffle=True, seed=3, num_workers=2, prefetch_depth=4)
    later = [[targets.tolist() for _, targets in first] for _ in range(2)][1]
    second.set_epoch(1)
    assert [targets.tolist() for _, targets in second] == later


def test_ranks_share_an_epoch(make_loader):
    parts = [[t for _, targets in make_loader(rank=rank, world_size=3, shuffle=True, seed=1) for t in targets.tolist()]
             for rank in range(3)]
    assert set().union(*parts) == set(range(SAMPLES))
    assert sum(map(len, parts)) == 102   # padded to a multiple of 3


def test_drop_last_leaves_the_short_batch_out(make_loader):
    assert [len(targets) for _, targets in make_loader(drop_last=True)] == [8] * 12


def test_a_pass_that_was_left_is_over_once_another_begins(make_loader):
    loader = make_loader(num_workers=1)
    left = iter(loader)
    next(left)
    assert len(list(loader)) == 13
    assert list(left) == []


def test_other_arrays_than_numpys(make_loader):
    torch = pytest.importorskip("torch")
    for data, targets in make_loader(as_="torch"):
        assert (data == torch.from_numpy(DATA)[targets]).all()
        assert data.dtype == torch.float32 and targets.dtype == torch.int64
    for data, targets in make_loader(as_="dlpack"):
        assert data.shape == (len(numpy.from_dlpack(targets)), 4)
        assert data.__dlpack_device__() == (1, 0)


def test_rows_have_the_types_of_their_array():
    for kind in ("bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64"):
        values = numpy.arange(6).reshape(3, 2).astype(kind)
        (data, targets), = drawpoint.DataLoader(drawpoint.rows(values), batch_size=3, as_="numpy")
        assert data.dtype == values.dtype and (data == values).all() and (targets == 0).all()
    with pytest.raises(TypeError, match="int8 to int64"):
        drawpoint.rows(numpy.zeros((2, 2), numpy.complex64))


def test_images_come_through_a_recipe(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for label in ("cats", "dogs"):
        (tmp_path / label).mkdir()
        for i in range(4):
            image.new("RGB", (40, 30), (i * 50, 100, 200)).save(tmp_path / label / f"{i}.png")
    photos = drawpoint.ImageFolder(tmp_path)
    assert photos.classes == ["cats", "dogs"] and len(photos) == 8
    recipe = photos | drawpoint.decode_image | drawpoint.CenterCrop(16) | drawpoint.Normalize([0, 0, 0], [1, 1, 1])
    assert recipe.stages == ["read", "decode+crop+resize+normalize"]
    (data, targets), = drawpoint.DataLoader(recipe, batch_size=8, as_="numpy")
    assert data.shape == (8, 3, 16, 16) and targets.tolist() == [0] * 4 + [1] * 4
    assert numpy.allclose(data[1, :, 8, 8], [50 / 255, 100 / 255, 200 / 255], atol=1e-3)
    (tmp_path / "cats" / "2.png").write_bytes(b"no image")
    loader = drawpoint.DataLoader(recipe, batch_size=2, num_workers=1, as_="numpy")
    passes = iter(loader)
    next(passes)
    with pytest.raises(drawpoint.SampleError, match="sample 2 ") as raised:
        next(passes)
    assert loader.state_dict()["batch"] == 2   # the one that failed counts
    assert raised.value.index == 2 and raised.value.path.endswith("2.png") and "decode" in raised.value.stage
    assert len(list(passes)) == 2   # the others come


@pytest.mark.parametrize("options, error, text", [
    ({"prefetch_factor": 2}, TypeError, "prefetch_depth"), ({"worker_init_fn": print}, TypeError, "threads"),
    ({"bogus": 1}, TypeError, "'bogus'"), ({"batch_size": 0}, ValueError, "batch_size must be at least 1, got 0"),
    ({"order": "x"}, ValueError, "'x'"), ({"as_": "tensorflow"}, ValueError, "tensorflow"),
    ({"rank": 3, "world_size": 2}, ValueError, "rank"),
    ({"record": "/no/such/folder/run.pftrace"}, OSError, "run.pftrace"),
])
def test_a_wrong_option_is_named(make_loader, options, error, text):
    with pytest.raises(error, match=text):
        make_loader(**options)


def test_what_is_no_source_is_named():
    with pytest.raises(TypeError, match="ndarray"):
        drawpoint.DataLoader(DATA)
    with pytest.raises(ValueError, match="/nowhere"):
        drawpoint.ImageFolder("/nowhere")


def test_a_recording_accounts_for_every_step(make_loader, tmp_path):
    loader = make_loader(num_workers=1, record=tmp_path / "run.pftrace", epochs=2)
    for _ in range(2):
        for _ in loader:
            pass
    loader.close()
    report = loader.report()
    assert "26 steps, 200 samples" in report
    assert (tmp_path / "run.pftrace").stat().st_size > 1000
    with pytest.raises(ValueError, match="record="):
        make_loader().report()
    with pytest.raises(RuntimeError, match="closed"):
        next(iter(loader))


def test_importing_it_loads_neither_torch_nor_numpy():
    program = "import sys, drawpoint; print({'torch', 'numpy', 'asyncio'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "set()"
