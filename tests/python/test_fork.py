"""A forked process has a loader's memory, and none of its threads."""

import os

import pytest
from conftest import is_right


@pytest.mark.parametrize("workers", [0, 2])
def test_a_child_can_read_but_not_draw_and_ends_by_itself(make_loader, tmp_path, workers):
    loader = make_loader(num_workers=workers, record=tmp_path / "run.pftrace")
    draws = iter(loader)
    batch = next(draws)
    said = tmp_path / "said"
    child = os.fork()
    if child == 0:
        try:
            text = str(is_right(batch))
            try:
                next(draws)
            except RuntimeError as error:
                text += f" {error}"
            del batch, draws, loader
            said.write_text(text)
        finally:
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert said.read_text().startswith(f"True drawpoint: this loader belongs to process {os.getpid()}")
    del batch
    assert len(list(draws)) == 12   # and the parent goes on
