#pragma once
#include <cstdint>
#include <cstdio>

#include <jpeglib.h>

namespace drawpoint {

/// Columns of interleaved blocks, first <= last.
struct BlockColumns {
    std::uint32_t first = 0, last = 0;
};

/// Has the started decompressor transform only these columns, which then come out first in every row of its planes. The library
/// does this for jpeg_crop_scanline(), which refuses raw planes, so the same fields are set from outside; jpegint.h, which
/// the library installs, declares them. Because the library found at run time may be another one, they are set only if each of
/// them holds what this image makes it hold. Not for files of several scans: smoothing blocks that lack their last bits looks
/// at the neighbours. False: nothing has been changed.
bool set_block_columns(jpeg_decompress_struct& info, BlockColumns columns) noexcept;

}   // namespace drawpoint
