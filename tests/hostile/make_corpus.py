#!/usr/bin/env python3
"""Writes a corpus of small hostile input files, each with the outcome that is expected when it is read.
usage: make_corpus.py OUT        (needs pillow 11 or newer, and zstandard)

OUT/manifest.tsv has a line NAME<TAB>KIND<TAB>EXPECTED for each file. KIND says what reads it: image, tar, idx, npy,
cifar (CIFAR-10), recording, checkpoint or chrome. EXPECTED is one of
  pixels W H CRC32    an image of this size whose RGB8 bytes, row by row, have this CRC: Pillow's convert("RGB")
  error TEXT          an error of the reader's own type whose message contains TEXT; of a recording also that parts of
                      it are left out as damaged, with a warning that contains TEXT
  either              the file is damaged where a reader may not notice: it is read, or there is an error as above
  rows N              that many samples
  reads               it can be read; a recording or trace may end early, which is a warning
Two runs with the same libraries write the same bytes."""

import sys
import warnings
from pathlib import Path

sys.dont_write_bytecode = True

from cases.arrays import cifars, idxs, npys
from cases.checkpoints import checkpoints
from cases.chrome import chromes
from cases.foreign import other_images
from cases.jpeg import jpegs_of_pillow, jpegs_of_structure
from cases.png import pngs
from cases.recordings import recordings
from cases.tar import tars
from cases.webp import webps

MOST_BYTES = 64 << 10
CASES = (jpegs_of_pillow, jpegs_of_structure, pngs, webps, other_images, tars, idxs, npys, cifars, recordings,
         checkpoints, chromes)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")   # Pillow's, of damaged EXIF data and large pictures
    lines = {}
    for files in CASES:
        for name, kind, data, expected in files():
            if name in lines or len(data) > MOST_BYTES:
                sys.exit(f"{name}: {'a second one' if name in lines else f'{len(data)} bytes are too many'}")
            (out / name).write_bytes(data)
            lines[name] = f"{name}\t{kind}\t{expected}\n"
    (out / "manifest.tsv").write_text("".join(lines.values()))


if __name__ == "__main__":
    main()
