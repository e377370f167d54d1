#include "pipeline/image/libjpeg.hpp"

#include <drawpoint/pipeline/image/jpeg.hpp>
#include "pipeline/image/column_window.hpp"

#include <algorithm>

#include <jerror.h>

namespace drawpoint {
namespace {

void note_place(j_common_ptr info, JpegFailure& failure) {
    const auto* const source = info->is_decompressor ? reinterpret_cast<j_decompress_ptr>(info)->src : nullptr;
    const bool at_the_end = failure.code == JWRN_JPEG_EOF || failure.code == JERR_INPUT_EOF;
    failure.at = source == nullptr ? 0
                 : at_the_end      ? failure.file_bytes
                                   : failure.file_bytes - std::min(failure.file_bytes, source->bytes_in_buffer);
}

[[noreturn]] void leave(j_common_ptr info) {
    auto& failure = *static_cast<JpegFailure*>(info->client_data);
    failure.code = info->err->msg_code;
    note_place(info, failure);
    info->err->format_message(info, failure.message);
    std::longjmp(failure.escape, 1);
}

void emit(j_common_ptr info, int level) {
    if (level < 0)
        leave(info);
}

void ignore(j_common_ptr) {}

void count_scans(j_common_ptr info) {
    if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= max_jpeg_scans)
        return;
    auto& failure = *static_cast<JpegFailure*>(info->client_data);
    failure.code = JpegFailure::too_many_scans;
    note_place(info, failure);
    std::snprintf(failure.message, sizeof failure.message, "more than %d scans", max_jpeg_scans);
    std::longjmp(failure.escape, 1);
}

template <class Step>
bool guarded(JpegReader& reader, Step step) noexcept {
    if (setjmp(reader.failure.escape) != 0)
        return false;
    step();
    return true;
}

}   // namespace

void report_to(JpegFailure& failure, jpeg_error_mgr& errors, jpeg_common_struct& info) noexcept {
    info.err = jpeg_std_error(&errors);
    info.client_data = &failure;
    errors.error_exit = leave;
    errors.emit_message = emit;
    errors.output_message = ignore;
}

bool create_reader(JpegReader& reader) noexcept {
    report_to(reader.failure, reader.errors, reinterpret_cast<jpeg_common_struct&>(reader.info));
    return guarded(reader, [&reader] {
        jpeg_create_decompress(&reader.info);
        reader.progress.progress_monitor = count_scans;
        reader.info.progress = &reader.progress;
    });
}

void destroy_reader(JpegReader& reader) noexcept { jpeg_destroy_decompress(&reader.info); }

bool read_header(JpegReader& reader, const std::byte* file, std::size_t size) noexcept {
    // A new decompressor: one that is kept would decode a file that lacks its tables with those of the file before.
    destroy_reader(reader);
    if (!create_reader(reader))
        return false;
    reader.failure.file_bytes = size;
    return guarded(reader, [&reader, file, size] {
        jpeg_mem_src(&reader.info, reinterpret_cast<const unsigned char*>(file), static_cast<unsigned long>(size));
        jpeg_read_header(&reader.info, TRUE);
    });
}

bool start_columns(JpegReader& reader, std::uint32_t& x, std::uint32_t& width) noexcept {
    return guarded(reader, [&reader, &x, &width] {
        auto& info = reader.info;
        info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_RGB;   // the library has no CMYK to RGB
        info.dct_method = JDCT_ISLOW;
        jpeg_start_decompress(&info);
        JDIMENSION first = x, count = width;
        jpeg_crop_scanline(&info, &first, &count);
        x = first;
        width = count;
    });
}

bool read_rows(JpegReader& reader, std::uint32_t y, std::uint32_t height, std::uint8_t* rows,
               std::size_t stride) noexcept {
    return guarded(reader, [&reader, y, height, rows, stride] {
        auto& info = reader.info;
        if (y > 0)
            jpeg_skip_scanlines(&info, y);
        const JDIMENSION end = y + height;
        while (info.output_scanline < end) {
            JSAMPROW pointers[16];
            const JDIMENSION count = std::min<JDIMENSION>(16, end - info.output_scanline);
            for (JDIMENSION i = 0; i < count; ++i)
                pointers[i] = rows + (info.output_scanline - y + i) * stride;
            jpeg_read_scanlines(&info, pointers, count);
        }
        jpeg_abort_decompress(&info);
    });
}

bool read_planes(JpegReader& reader, JpegBlocks& blocks, const JpegPlane* planes) noexcept {
    return guarded(reader, [&reader, &blocks, planes] {
        auto& info = reader.info;
        info.raw_data_out = TRUE;
        info.out_color_space = info.jpeg_color_space;
        info.do_fancy_upsampling = FALSE;
        info.dct_method = JDCT_ISLOW;
        jpeg_start_decompress(&info);
        if (!reader.restricts_columns || !set_block_columns(info, {blocks.column_begin, blocks.column_end - 1}))
            blocks.column_begin = 0;
        const auto height = static_cast<JDIMENSION>(info.max_v_samp_factor * DCTSIZE);
        JSAMPROW rows[3][2 * DCTSIZE];
        JSAMPARRAY components[3] = {rows[0], rows[1], rows[2]};
        for (std::uint32_t row = 0; row < blocks.row_end; ++row) {
            // Only entropy-decoded above the first row wanted. Not before the start: the entropy decoder would take
            // such a component for one to be thrown away.
            const bool wanted = row >= blocks.row_begin;
            for (int c = 0; c < info.num_components; ++c) {
                jpeg_component_info& component = info.comp_info[c];
                component.component_needed = wanted;
                const auto lines = static_cast<std::size_t>(component.v_samp_factor * DCTSIZE);
                const std::size_t above = wanted ? (row - blocks.row_begin) * lines : 0;
                for (std::size_t line = 0; line < lines; ++line)
                    rows[c][line] = planes[c].samples + (above + line) * planes[c].stride;
            }
            jpeg_read_raw_data(&info, components, height);
        }
        jpeg_abort_decompress(&info);
    });
}

}   // namespace drawpoint
