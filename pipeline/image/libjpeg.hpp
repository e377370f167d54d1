#pragma once
// libjpeg behind functions that return false where the library would leave by longjmp. Everything here is trivially
// destructible, and so is everything alive between a setjmp and its longjmp: no C++ frame is ever jumped over.
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <jpeglib.h>

namespace drawpoint {

/// The point at which a library call failed.
struct JpegFailure {
    std::jmp_buf escape;
    int code;                 ///< the library's message code, or too_many_scans
    std::size_t file_bytes;   ///< size of the file
    std::size_t at;           ///< bytes read when the library noticed the failure
    char message[JMSG_LENGTH_MAX];

    static constexpr int too_many_scans = -1;
};

/// A decompressor, reused for one file after another. Initialised by create_reader(); does not move.
struct JpegReader {
    jpeg_decompress_struct info;
    jpeg_error_mgr errors;
    jpeg_progress_mgr progress;
    JpegFailure failure;
    bool restricts_columns;   ///< set_block_columns() is known to work with this library
};

/// Points `errors` and the message of `info` at `failure`: errors and warnings alike end the guarded call.
void report_to(JpegFailure& failure, jpeg_error_mgr& errors, jpeg_common_struct& info) noexcept;

bool create_reader(JpegReader& reader) noexcept;
void destroy_reader(JpegReader& reader) noexcept;

/// Reads the header of the next file; the state of the previous one is dropped.
bool read_header(JpegReader& reader, const std::byte* file, std::size_t size) noexcept;

/// Starts decoding the columns [x, x + width), and widens x and width to the columns that the rows will contain.
bool start_columns(JpegReader& reader, std::uint32_t& x, std::uint32_t& width) noexcept;

/// Decodes the rows [y, y + height), each `stride` bytes after the one before it, and drops the rest of the file.
bool read_rows(JpegReader& reader, std::uint32_t y, std::uint32_t height, std::uint8_t* rows,
               std::size_t stride) noexcept;

/// Where a component's samples go. Rows have room for all of the image's whole blocks.
struct JpegPlane {
    std::uint8_t* samples;
    std::size_t stride;
};

/// Rows and columns [begin, end) of interleaved blocks.
struct JpegBlocks {
    std::uint32_t row_begin, row_end, column_begin, column_end;
};

/// Decodes `blocks` of all components, without interpolating or converting colour, and drops the rest of the file. For
/// at most three components of at most 16 sample rows in a row of blocks. Where the library does not restrict columns,
/// the planes begin with column 0 and column_begin becomes 0.
bool read_planes(JpegReader& reader, JpegBlocks& blocks, const JpegPlane* planes) noexcept;

}   // namespace drawpoint
