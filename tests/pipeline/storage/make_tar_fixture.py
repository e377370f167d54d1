#!/usr/bin/env python3
"""make_tar_fixture.py: writes the files of tests/pipeline/storage/fixture, with webdataset 1.0.2, pillow and numpy (in a virtual
environment). The pictures are its own; the files beside the shards hold what went in."""

import io
from pathlib import Path

import numpy as np
import webdataset as wds
from PIL import Image

FOLDER = Path(__file__).parent / "fixture"
FIELDS = ["jpg", "jpg", "jpeg", "png", "webp", "jpg"]


def picture(number, field):
    y, x = np.mgrid[0:24, 0:32]
    planes = [(x * (number + 1)) % 256, (y * 9 + 30 * number) % 256, (x + y) * 4 % 256]
    file = io.BytesIO()
    Image.fromarray(np.stack(planes, axis=-1).astype(np.uint8)).save(file, {"jpg": "jpeg"}.get(field, field))
    return file.getvalue()


def main():
    FOLDER.mkdir(exist_ok=True)
    pictures = [picture(number, field) for number, field in enumerate(FIELDS)]
    for number, (field, file) in enumerate(zip(FIELDS, pictures)):
        (FOLDER / f"{number}.{field}").write_bytes(file)
    options = {"verbose": 0, "maxcount": 1000, "encoder": True}
    with wds.ShardWriter(str(FOLDER / "cls-%04d.tar"), **options) as shards:   # labels 0, 2, 4 … as decimal text
        for number, (field, file) in enumerate(zip(FIELDS, pictures)):
            shards.write({"__key__": f"sample{number:04d}", field: file, "cls": 2 * number})
    with wds.TarWriter(str(FOLDER / "json.tar.gz")) as shard:
        for number, (field, file) in enumerate(zip(FIELDS, pictures)):
            shard.write({"__key__": f"a.b/sample{number}", field: file, "json": {"label": 5 - number, "of": [1, {}]},
                         "seg.png": b"another picture", "note.txt": "a.b"})


if __name__ == "__main__":
    main()
