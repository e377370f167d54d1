"""What a draw that waits leaves to others: threads, signals, event loops."""

import asyncio
import os
import signal
import threading
import time

import pytest
from conftest import is_right

import drawpoint


@pytest.fixture
def slow(tmp_path, request):
    """A loader whose samples take long: large images."""
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "class").mkdir()
    picture = image.effect_noise((3000, 2000), 50).convert("RGB")
    for i in range(8):
        picture.save(tmp_path / "class" / f"{i}.png", compress_level=1)
    recipe = drawpoint.ImageFolder(tmp_path) | drawpoint.decode_image | drawpoint.CenterCrop(64)
    with drawpoint.DataLoader(recipe, batch_size=8, num_workers=1, as_="numpy") as loader:
        yield loader


def test_other_threads_go_on_while_a_draw_waits(slow):
    rounds, ended = [0], threading.Event()

    def count():
        while not ended.is_set():
            rounds[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    draws = iter(slow)
    before = rounds[0]
    next(draws)
    assert rounds[0] - before > 1000
    ended.set()
    thread.join()


def test_ctrl_c_ends_a_wait(slow):
    draws = iter(slow)
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        next(draws)
        time.sleep(5)
    assert len(list(draws)) <= 1   # and the pass goes on


def test_an_event_loop_goes_on(slow, make_loader):
    async def train(loader):
        ticks, batches = 0, 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.001)

        ticking = asyncio.ensure_future(tick())
        async for _ in loader:
            batches += 1
        ticking.cancel()
        return ticks, batches

    ticks, batches = asyncio.run(train(slow))
    assert batches == 1 and ticks > 20

    async def whole(loader):
        return [is_right(batch) async for batch in loader]

    assert asyncio.run(whole(make_loader(num_workers=2))) == [True] * 13
