"""What `record=` may be."""

import os

from . import _core


def is_file(record):
    """Whether `record` names a file, whose recording is then its user's alone."""
    return record is not None and not isinstance(record, _core.Recording)


def recording_of(record):
    """The recording that `record=` asks for; None: none."""
    return _core.Recording(os.fspath(record)) if is_file(record) else record
