#pragma once
#include <cstdint>
#include <cstdio>

#include <jpeglib.h>

namespace drawpoint {

/// Columns of interleaved blocks: [first, last], first <= last.
struct BlockColumns {
    std::uint32_t first = 0, last = 0;
};

/// Restricts a started decompressor to these columns, which then come first in every row of its planes; returns false,
/// with nothing changed, where that is not possible. libjpeg does the same inside jpeg_crop_scanline(), which refuses
/// raw planes, so this sets the same private fields, declared by jpegint.h, from outside. The library found at run time
/// may be another build: the fields are set only if each holds the value that this image implies. Not for files of
/// several scans, because block smoothing reads the neighbouring blocks.
bool set_block_columns(jpeg_decompress_struct& info, BlockColumns columns) noexcept;

}   // namespace drawpoint
