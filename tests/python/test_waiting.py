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


def test_a_draw_that_waits_ends_with_its_pass_or_its_loader(slow):
    async def leave(how):
        async def draw(passes):
            return [batch async for batch in passes]

        task = asyncio.ensure_future(draw(aiter(slow)))
        await asyncio.sleep(0.02)
        with pytest.raises(RuntimeError, match="another draw"):
            await anext(slow._pass)
        how()
        return await asyncio.wait_for(task, 20)

    assert asyncio.run(leave(lambda: aiter(slow))) == []
    assert asyncio.run(leave(slow.close)) == []


def test_a_cancelled_draw_takes_nothing_and_is_no_waiting_any_more(slow, tmp_path):
    record = tmp_path / "run.pftrace"
    loader = drawpoint.DataLoader(slow.dataset, batch_size=8, num_workers=1, as_="numpy", record=record)

    async def draw():
        passes = aiter(loader)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(anext(passes), 0.02)
        return [len(targets) async for _, targets in passes]

    assert asyncio.run(draw()) == [8]
    loader.close()
    assert "1 steps" in loader.report() or "1 step," in loader.report()


def test_another_thread_is_refused_while_a_draw_waits(slow):
    draws, said = iter(slow), []

    def close():
        time.sleep(0.05)
        try:
            slow.close()
        except RuntimeError as error:
            said.append(str(error))

    thread = threading.Thread(target=close)
    thread.start()
    next(draws)
    thread.join()
    assert said and "in use" in said[0]
