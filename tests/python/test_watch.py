"""watch(): the same batches, and all that PyTorch's workers do in the recording."""

import copy
import gc
import os
import pickle
import subprocess
import sys
import time
import weakref

import pytest

torch = pytest.importorskip("torch")
import torch.utils.data as data   # noqa: E402

import drawpoint   # noqa: E402
from watched import (BATCH, SAMPLES, Fails, Frozen, Noise, Rows, Stream, Together, batches, in_any_order,   # noqa: E402
                     ledger_of, loader, same, twice)


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
@pytest.mark.parametrize("dataset", [Rows, Together, Stream])
def test_batches_are_the_same_bit_for_bit(tmp_path, workers, dataset):
    expected = batches(loader(dataset(), workers))
    watched = drawpoint.watch(loader(dataset(), workers), tmp_path / "run.pftrace")
    assert same(batches(watched), expected)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_batches_are_the_same_however_workers_start(tmp_path, method):
    expected = batches(loader(multiprocessing_context=method))
    watched = drawpoint.watch(loader(multiprocessing_context=method), tmp_path / "run.pftrace")
    assert same(batches(watched), expected)


@pytest.mark.parametrize("options", [{"persistent_workers": True}, {"prefetch_factor": 4}, {"drop_last": True}])
def test_batches_are_the_same_with_options(tmp_path, options):
    expected = batches(loader(**options))
    assert same(batches(drawpoint.watch(loader(**options), tmp_path / "run.pftrace")), expected)


@pytest.mark.skipif("in_order" not in data.DataLoader.__init__.__code__.co_varnames, reason="an older torch")
def test_batches_out_of_order_are_the_same(tmp_path):
    # Of data without chance: which worker makes a batch, and so its random numbers, depends on time.
    expected = in_any_order(batches(loader(Frozen(), in_order=False), 1))
    watched = drawpoint.watch(loader(Frozen(), in_order=False), tmp_path / "run.pftrace")
    assert same(in_any_order(batches(watched, 1)), expected)


def test_the_loader_and_its_data_set_stay_as_they_were(tmp_path):
    for workers in (0, 2):
        mine = loader(workers=workers)
        before, of_data, of_compose = dict(vars(mine)), dict(vars(mine.dataset)), list(mine.dataset.transform.transforms)
        watched = drawpoint.watch(mine, tmp_path / f"{workers}.pftrace")
        batches(watched)
        assert vars(mine) == before and type(mine.dataset) is Rows
        assert mine.dataset.transform.transforms == of_compose and vars(mine.dataset).keys() == of_data.keys()


def test_a_pass_left_early_restores_the_data_set(tmp_path):
    mine = loader(workers=0)
    for _ in drawpoint.watch(mine, tmp_path / "run.pftrace"):
        break
    assert type(mine.dataset) is Rows and mine.dataset.transform.transforms[0] is twice


def test_it_looks_like_the_loader(tmp_path):
    mine = loader()
    watched = drawpoint.watch(mine, tmp_path / "run.pftrace")
    assert isinstance(watched, data.DataLoader) and len(watched) == len(mine)
    assert watched.dataset is mine.dataset and watched.batch_size == BATCH and watched.num_workers == 2
    with pytest.raises(AttributeError):
        watched.no_such_thing


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
@pytest.mark.parametrize("dataset", [Rows, Together, Stream])
def test_every_sample_is_recorded_and_nothing_is_left_over(tmp_path, workers, dataset):
    file = tmp_path / "run.pftrace"
    watched = drawpoint.watch(loader(dataset(), workers), file)
    drawn = batches(watched)
    watched.close()
    ledger = ledger_of(file, tmp_path)
    assert ledger["pipelines"][0]["kind"] == "pytorch" and ledger["pipelines"][0]["num_workers"] == workers
    assert ledger["pipelines"][0]["prefetch_depth"] == max(2 * workers, 1)
    assert len(ledger["steps"]) == len(ledger["batches"]) == len(drawn)
    assert sum(row["samples"] for row in ledger["samples"]) == 2 * SAMPLES
    if dataset is Rows:
        assert ledger["pipelines"][0]["stages"] == ["getitem", "twice", "Noise", "after the transforms"]
        by_batch = {}
        for row in ledger["samples"]:
            by_batch.setdefault((row["epoch"], row["batch"]), []).append(row["index"])
        for row, batch in zip(sorted(ledger["batches"], key=lambda row: (row["epoch"], row["batch"])), drawn):
            assert by_batch[row["epoch"], row["batch"]] == batch[1].tolist()
    for step in ledger["steps"]:
        assert sum(piece["ns"] for piece in step["spans"] if piece["span"] in ("starved", "handoff", "transfer")) \
            == step["draw_ns"]
    for row in ledger["batches"]:
        stamps = [row[key] for key in ("admitted_ns", "first_claim_ns", "last_done_ns", "collate_begin_ns",
                                       "collate_end_ns", "delivery_begin_ns", "delivery_end_ns", "offered_ns",
                                       "taken_ns") if row[key] is not None]
        assert stamps == sorted(stamps)
        assert (row["delivery_begin_ns"] is None) == (workers == 0)
        for key in ("worker_cpu_ns", "process_cpu_ns"):
            assert (row[key] is None) == (workers == 0)
        assert not workers or row["collate_cpu_ns"] <= row["worker_cpu_ns"] and row["process_cpu_ns"] > 0
    if workers:   # of the first draw at least
        assert any(row["receive_cpu_ns"] is not None and row["receive_cpu_ns"] > 0 for row in ledger["batches"])
    for row in ledger["samples"]:
        ends = row["begin_ns"]
        for stage in row["stages"]:
            assert stage["begin_ns"] >= ends and stage["ns"] >= 0
            ends = stage["begin_ns"] + stage["ns"]
    if workers:
        assert ledger["host"][-1]["children_cpu_ns"] > 0


def burn_300_ms(worker):
    begin = time.thread_time_ns()
    while time.thread_time_ns() - begin < 300_000_000:
        pass


def test_what_a_worker_computes_to_get_ready_is_of_no_batch(tmp_path):
    file = tmp_path / "run.pftrace"
    watched = drawpoint.watch(loader(workers=1, worker_init_fn=burn_300_ms), file)
    batches(watched, 1)
    watched.close()
    ledger = ledger_of(file, tmp_path)
    assert all(row["worker_cpu_ns"] < 300_000_000 for row in ledger["batches"])
    assert ledger["orders"][0]["ns"] >= 300_000_000


def test_spawned_workers_stamp_by_the_loops_clock(tmp_path):
    file = tmp_path / "run.pftrace"
    watched = drawpoint.watch(loader(workers=1, multiprocessing_context="spawn"), file)
    batches(watched, 1)
    watched.close()
    ledger = ledger_of(file, tmp_path)
    for step, row in zip(ledger["steps"], ledger["batches"]):
        assert row["delivery_end_ns"] <= row["taken_ns"] <= step["draw_begin_ns"] + step["draw_ns"]


@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, {"num_workers": 2, "persistent_workers": True}])
def test_a_stateful_loader_goes_on_where_it_was(tmp_path, options):
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def make():
        return stateful.StatefulDataLoader(Rows(), BATCH, shuffle=True, generator=torch.Generator().manual_seed(5),
                                           **options)

    def targets_in_two_parts(watch):
        """The state is the loader's own, however it is asked for it."""
        first, second = make(), make()
        first.state_dict()   # begins the pass that iter() then returns
        draws = iter(watch(first))
        targets = [next(draws)[1] for _ in range(3)]
        second.load_state_dict(first.state_dict())
        watched = watch(second)
        passes = [[batch[1] for batch in watched] for _ in range(2)]
        return [torch.cat(targets + passes[0]), torch.cat(passes[1])]

    file = tmp_path / "run.pftrace"
    watched = drawpoint.watch(make(), file)
    assert len(batches(watched)) == 2 * len(make())
    watched.close()
    assert len(ledger_of(file, tmp_path)["steps"]) == 2 * len(make())
    parts = targets_in_two_parts(lambda loader: drawpoint.watch(loader, tmp_path / f"{id(loader)}.pftrace"))
    assert all(map(torch.equal, parts, targets_in_two_parts(lambda loader: loader)))
    assert [sorted(one.tolist()) for one in parts] == 2 * [list(range(SAMPLES))]


def test_a_data_set_that_throws_throws_as_without(tmp_path):
    for workers in (0, 2):
        watched = drawpoint.watch(loader(Fails(), workers), tmp_path / f"{workers}.pftrace")
        with pytest.raises(KeyError, match="no sample thirty"):
            batches(watched)
        assert same(batches(drawpoint.watch(loader(workers=workers), tmp_path / "next.pftrace"), 1),
                    batches(loader(workers=workers), 1))


def test_a_worker_that_is_killed_ends_the_pass_with_pytorchs_error(tmp_path):
    watched = drawpoint.watch(loader(Killed(), 1), tmp_path / "run.pftrace")
    with pytest.raises(RuntimeError, match="exited unexpectedly|killed"):
        batches(watched)
    watched.close()


class Killed(Rows):
    def __getitem__(self, index):
        if data.get_worker_info() is not None:
            os._exit(3)
        return super().__getitem__(index)


def test_loops_share_a_recording(tmp_path):
    file = tmp_path / "run.pftrace"
    with drawpoint.Recording(str(file)) as recording:
        train = drawpoint.watch(loader(), recording)
        valid = drawpoint.watch(loader(workers=0), recording, name="valid", phase="valid")
        ours = drawpoint.DataLoader(drawpoint.rows(torch.arange(64).reshape(16, 4), torch.arange(16)), 4,
                                    record=recording, name="ours")
        for _ in range(2):
            for number, _ in enumerate(train):
                if number == 3:
                    batches(valid, 1)   # within a training pass
            batches(valid, 1)
        batches(ours, 1)
        ours.close()
    ledger = ledger_of(file, tmp_path)
    assert [row["name"] for row in ledger["pipelines"]] == ["train", "valid", "ours"]
    phases = [row["phase"] for row in ledger["steps"]]
    assert phases.count("train") == 2 * len(train) + 4 and phases.count("valid") == 4 * len(valid)
    assert all(row["ended"] for row in ledger["passes"])


def test_one_file_is_recorded_by_one(tmp_path):
    watched = drawpoint.watch(loader(), tmp_path / "run.pftrace")
    with pytest.raises(OSError):
        drawpoint.watch(loader(), tmp_path / "run.pftrace")
    batches(watched, 1)
    watched.close()
    assert len(batches(watched, 1)) == 8   # goes on, and records nothing
    assert len(ledger_of(tmp_path / "run.pftrace", tmp_path)["steps"]) == 8
    with drawpoint.Recording(str(tmp_path / "other.pftrace")) as recording:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        drawpoint.watch(loader(), recording)


@pytest.mark.parametrize("iterable", [range(5), [torch.zeros(3, 2), torch.ones(4, 2)],
                                      [{"x": torch.zeros(2), "y": 1}]])
def test_any_iterable_is_split_into_draw_and_step(tmp_path, iterable):
    file = tmp_path / "run.pftrace"
    watched = drawpoint.watch(iterable, file)
    drawn = list(watched)
    assert len(drawn) == len(iterable) and all(x is y for x, y in zip(drawn, iterable))
    watched.close()
    ledger = ledger_of(file, tmp_path)
    assert len(ledger["steps"]) == len(iterable) and not ledger["pipelines"]


def test_a_generator_that_throws_throws_as_without(tmp_path):
    def two():
        yield 1
        raise ValueError("the second")
    watched = iter(drawpoint.watch(two(), tmp_path / "run.pftrace"))
    assert next(watched) == 1
    with pytest.raises(ValueError, match="the second"):
        next(watched)


def test_bad_arguments_are_named(tmp_path):
    with pytest.raises(ValueError, match="phase"):
        drawpoint.watch(loader(), tmp_path / "run.pftrace", phase="test")
    with pytest.raises(ValueError, match="record"):
        drawpoint.watch(loader(), None)
    with pytest.raises(OSError):
        drawpoint.watch(loader(), tmp_path / "nowhere" / "run.pftrace")


def test_a_full_disk_ends_the_recording_and_not_the_training(tmp_path):
    watched = drawpoint.watch(loader(), "/dev/full")
    assert same(batches(watched), batches(loader()))
    watched.close()


def test_a_pinned_batch_is_stamped_when_it_is_pinned():
    stamps = drawpoint._core.WorkerStamps(1, 0)
    stamps.get_items(Rows(), [1, 2])
    stamps.begin_collate()
    stamped = stamps.stamped(torch.zeros(2))
    try:
        assert stamped.pin_memory() is stamped
    except RuntimeError:   # without an accelerator PyTorch cannot pin
        pass
    assert torch.equal(copy.copy(stamped.batch), torch.zeros(2))


def test_a_recording_goes_on_after_the_program_was_killed(tmp_path):
    file = tmp_path / "run.pftrace"
    code = ("import os, signal, time, sys; sys.path.insert(0, sys.argv[2]); import watched as t, drawpoint\n"
            "t.batches(drawpoint.watch(t.loader(), sys.argv[1]), 3)\n"
            "time.sleep(0.5); os.kill(os.getpid(), signal.SIGKILL)\n")
    killed = subprocess.run([sys.executable, "-c", code, str(file), os.path.dirname(__file__)], capture_output=True)
    assert killed.returncode == -9, killed.stderr.decode()
    assert len(ledger_of(file, tmp_path)["steps"]) >= 2 * 8


class OwnIterator(data.DataLoader):
    def __iter__(self):
        for x, y in super().__iter__():
            yield x + 1, y


def test_a_loader_with_an_iterator_of_its_own_is_watched_from_outside(tmp_path):
    def make():
        return OwnIterator(Rows(), BATCH, num_workers=1, generator=torch.Generator().manual_seed(5))
    assert same(batches(drawpoint.watch(make(), tmp_path / "run.pftrace")), batches(make()))


def test_two_passes_at_once_leave_the_data_set_as_it_was(tmp_path):
    mine = loader(workers=0)
    watched = drawpoint.watch(mine, tmp_path / "one.pftrace")
    other = drawpoint.watch(data.DataLoader(mine.dataset, BATCH), tmp_path / "other.pftrace")
    first, second = iter(watched), iter(other)
    third = iter(watched)
    for one in (first, second, third):
        next(one)
    del first
    assert len(list(third)) == len(mine) - 1
    del second, third
    assert type(mine.dataset) is Rows and mine.dataset.transform.transforms[0] is twice
    assert type(mine.dataset.transform.transforms[1]) is Noise


def test_a_pass_that_another_replaced_is_not_recorded_and_goes_on(tmp_path):
    file = tmp_path / "run.pftrace"
    watched = drawpoint.watch(loader(workers=1), file)
    old = iter(watched)
    next(old)
    new = iter(watched)
    assert len(list(old)) == len(watched) - 1
    del old
    assert len(list(new)) == len(watched)
    watched.close()
    steps = ledger_of(file, tmp_path)["steps"]
    assert [step["epoch"] for step in steps] == [0] + [1] * len(watched)


@pytest.mark.parametrize("workers", [0, 1])
def test_what_is_watched_lives_as_long_as_its_loop(tmp_path, workers):
    file = tmp_path / "run.pftrace"
    for _ in drawpoint.watch(loader(workers=workers), file):
        pass
    assert len(ledger_of(file, tmp_path)["steps"]) == 8   # and the file is whole when the loop ends
    with drawpoint.Recording(str(tmp_path / "shared.pftrace")) as recording:
        for _ in drawpoint.watch(loader(workers=workers), recording):
            pass
    assert len(ledger_of(tmp_path / "shared.pftrace", tmp_path)["steps"]) == 8


def test_a_pass_may_end_while_it_draws(tmp_path):
    class Again:
        count = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.count += 1
            if self.count == 2:
                list(self.passing)
                return "back"
            if self.count == 4:
                raise StopIteration
            return self.count

    again = Again()
    again.passing = iter(drawpoint.watch(again, tmp_path / "run.pftrace"))
    assert list(again.passing) == [1, "back"]


def test_what_is_watched_is_collected_with_what_refers_to_it(tmp_path):
    class Trainer:
        def __init__(self):
            self.draws = iter(drawpoint.watch(data.DataLoader(Frozen(), 4, num_workers=1, collate_fn=self.collate),
                                              tmp_path / "run.pftrace"))
            next(self.draws)

        def collate(self, samples):
            return data.default_collate(samples)

    trainer = Trainer()
    gone = weakref.ref(trainer)
    del trainer
    gc.collect()
    assert gone() is None
    drawpoint.Recording(str(tmp_path / "run.pftrace")).close()   # and nobody writes the file any more


def test_a_recording_ends_with_the_program(tmp_path):
    file = tmp_path / "run.pftrace"
    code = ("import sys, drawpoint\nrecording = drawpoint.Recording(sys.argv[1])\n"
            "class Numbers:\n    def __iter__(self): return (i for i in range(100))\n"
            "draws = iter(drawpoint.watch(Numbers(), recording))\n"
            "for _ in range(60): next(draws)\n")
    subprocess.run([sys.executable, "-c", code, str(file)], check=True)
    assert len(ledger_of(file, tmp_path)["steps"]) == 60


def test_errors_that_the_loop_catches_cost_one_batch(tmp_path):
    file, drawn = tmp_path / "run.pftrace", 0
    mine = data.DataLoader(Fails(), BATCH)
    draws = iter(drawpoint.watch(mine, file))
    while True:
        try:
            next(draws)
            drawn += 1
        except KeyError:
            continue
        except StopIteration:
            break
    del draws
    assert drawn == len(mine) - 1 and type(mine.dataset) is Fails
    ledger = ledger_of(file, tmp_path)
    assert sum(row["samples"] for row in ledger["samples"]) == SAMPLES - BATCH
    assert [step["status"] for step in ledger["steps"]].count("failed") == 1


def test_a_loop_within_anothers_draw_is_not_recorded(tmp_path):
    file = tmp_path / "run.pftrace"
    with drawpoint.Recording(str(file)) as recording:
        outer = drawpoint.watch(drawpoint.watch([1, 2, 3], recording), recording)
        assert list(outer) == [1, 2, 3]
    ledger = ledger_of(file, tmp_path)
    assert len(ledger["steps"]) == 3 and all(row["ended"] for row in ledger["passes"])


def test_what_is_set_goes_for_the_next_pass(tmp_path):
    mine = data.DataLoader(Frozen(), 4, collate_fn=lambda samples: 1)
    watched = drawpoint.watch(mine, tmp_path / "run.pftrace")
    assert set(watched) == {1}
    watched.collate_fn = lambda samples: 2
    assert set(watched) == {2} and mine.collate_fn([]) == 2
    assert bool(drawpoint.watch((i for i in range(3)), tmp_path / "generator.pftrace"))
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(watched)
