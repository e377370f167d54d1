"""What `record=` may be."""

import os
from pathlib import Path

from . import _core


def is_file(record):
    """Whether `record` names a file, whose recording is then its user's alone."""
    return record is not None and not isinstance(record, _core.Recording)


def recording_of(record):
    """The recording that `record=` asks for; None: none."""
    return _core.Recording(os.fspath(record)) if is_file(record) else record


def of_this_rank(record):
    """The file of this rank of a distributed run, `run.rank1.pftrace`; that of rank 0, and a Recording, stay as is."""
    rank = int(os.environ.get("RANK", os.environ.get("LOCAL_RANK", 0)))
    if not is_file(record) or rank == 0:
        return record
    file = Path(record)
    return file.with_name(f"{file.stem}.rank{rank}{file.suffix}")
