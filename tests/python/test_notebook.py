"""The notebook runs from its first cell to its last."""

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")

NOTEBOOK = Path(__file__).parents[2] / "examples/python/why_is_my_loader_slow.ipynb"


def test_all_cells_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    names = {"__name__": "notebook"}
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)   # noqa: S102
    assert (tmp_path / "run.pftrace").stat().st_size > 0
    names["ask"]("export", "run.pftrace", "--to", "json", "-o", "run.json")
    assert len(json.loads((tmp_path / "run.json").read_text())["steps"]) == 151   # of which some warm up
    if not names["diagnosis"]["abstained"]:   # as it does where tests run beside this one
        assert "DataLoader(" in capsys.readouterr().out   # the line to write
        assert names["diagnosis"]["verdict"] in ("workers", "read-latency")
