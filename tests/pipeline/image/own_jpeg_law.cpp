#include "pipeline/image/own_jpeg_law.hpp"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

#include <jpeglib.h>

namespace drawpoint::test {

struct LibraryPlanes::State {
    static State& of(j_common_ptr info) { return *static_cast<State*>(info->client_data); }
    [[noreturn]] static void leave(j_common_ptr info) {
        char text[JMSG_LENGTH_MAX];
        info->err->format_message(info, text);
        of(info).message = text;
        std::longjmp(of(info).escape, 1);
    }
    static void emit(j_common_ptr info, int level) {
        if (level < 0)
            leave(info);
    }
    static void ignore(j_common_ptr) {}

    void read_rows(std::uint32_t end) {
        info.raw_data_out = TRUE;
        info.out_color_space = info.jpeg_color_space;
        info.do_fancy_upsampling = FALSE;
        info.dct_method = JDCT_ISLOW;
        jpeg_start_decompress(&info);
        const auto height = static_cast<std::uint32_t>(info.max_v_samp_factor) * 8;
        const std::uint32_t rows = (std::min(end, info.image_height) + height - 1) / height;
        JSAMPROW pointers[3][32];
        JSAMPARRAY arrays[3];
        for (std::size_t c = 0; c < static_cast<std::size_t>(info.num_components); ++c) {
            const jpeg_component_info& component = info.comp_info[c];
            strides[c] = (component.width_in_blocks + 2) * 8;
            planes[c].resize(strides[c] * rows * static_cast<std::uint32_t>(component.v_samp_factor) * 8);
            arrays[c] = pointers[c];
        }
        for (std::uint32_t row = 0; row < rows; ++row) {
            for (std::size_t c = 0; c < static_cast<std::size_t>(info.num_components); ++c) {
                const auto lines = static_cast<std::uint32_t>(info.comp_info[c].v_samp_factor) * 8;
                for (std::uint32_t i = 0; i < lines; ++i)
                    pointers[c][i] = planes[c].data() + strides[c] * (row * lines + i);
            }
            jpeg_read_raw_data(&info, arrays, height);
        }
        jpeg_abort_decompress(&info);
    }

    jpeg_decompress_struct info{};
    jpeg_error_mgr errors{};
    std::jmp_buf escape;
    std::string message;
    std::array<std::vector<std::uint8_t>, 3> planes;
    std::array<std::size_t, 3> strides{};
};

LibraryPlanes::LibraryPlanes() : state_{std::make_unique<State>()} {
    State& state = *state_;
    state.info.err = jpeg_std_error(&state.errors);
    state.info.client_data = &state;
    state.errors.error_exit = State::leave;
    state.errors.emit_message = State::emit;
    state.errors.output_message = State::ignore;
    jpeg_create_decompress(&state.info);
}

LibraryPlanes::~LibraryPlanes() { jpeg_destroy_decompress(&state_->info); }

bool LibraryPlanes::decode(std::span<const std::byte> file, std::uint32_t end) {
    State& state = *state_;
    if (setjmp(state.escape) != 0)
        return false;
    // A new object, since an aborted one keeps the tables of the file before, with which this file might decode.
    jpeg_destroy_decompress(&state.info);
    jpeg_create_decompress(&state.info);
    jpeg_mem_src(&state.info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&state.info, TRUE);
    if (state.info.num_components > 3 || state.info.max_v_samp_factor > 4) {
        state.message = "more components than the own decoder can have read";
        return false;
    }
    state.read_rows(end);
    return true;
}

std::uint32_t LibraryPlanes::across() const noexcept {
    return static_cast<std::uint32_t>(state_->info.max_h_samp_factor);
}
std::uint32_t LibraryPlanes::down() const noexcept {
    return static_cast<std::uint32_t>(state_->info.max_v_samp_factor);
}
const std::uint8_t* LibraryPlanes::row(std::size_t plane, std::uint32_t y) const noexcept {
    return state_->planes[plane].data() + state_->strides[plane] * y;
}
const std::string& LibraryPlanes::message() const noexcept { return state_->message; }

bool OwnJpegLaw::planes_are_equal(const YccPlanes& planes, CropBox crop, const char* whose) {
    const PlaneView* views[3] = {&planes.luma, &planes.blue, &planes.red};
    const std::uint32_t right = std::min(planes.image.width, crop.x + crop.width + 1);
    const std::uint32_t bottom = std::min(planes.image.height, crop.y + crop.height + 1);
    for (std::size_t c = 0; c < (planes.sampling == ChromaSampling::gray ? 1u : 3u); ++c) {
        const std::uint32_t across = c == 0 ? 1 : library_.across(), down = c == 0 ? 1 : library_.down();
        const std::uint32_t left = (crop.x - std::min(crop.x, 1u)) / across;
        const std::uint32_t top = (crop.y - std::min(crop.y, 1u)) / down;
        const std::uint32_t width = (right + across - 1) / across - left;
        const PlaneView& view = *views[c];
        if (view.x != left || view.y != top) {
            fault_ = std::string(whose) + ": a plane begins elsewhere";
            return false;
        }
        for (std::uint32_t y = top; y < (bottom + down - 1) / down; ++y)
            if (std::memcmp(view.samples + (y - top) * view.stride, library_.row(c, y) + left, width) != 0) {
                fault_ = std::string(whose) + ": plane " + std::to_string(c) + " differs in row " + std::to_string(y);
                return false;
            }
    }
    return true;
}

OwnJpegLaw::Verdict OwnJpegLaw::check(std::span<const std::byte> file, CropBox crop, bool portably) {
    YccPlanes best, portable;
    const bool opened = best_.open(file);
    if (portably && opened != portable_.open(file)) {
        fault_ = "one set of instructions opens what the other refuses";
        return Verdict::broken;
    }
    if (!opened)
        return Verdict::refused;
    const bool decoded = best_.decode_planes(crop, best);
    if (portably && decoded != portable_.decode_planes(crop, portable)) {
        fault_ = "one set of instructions decodes what the other gives up";
        return Verdict::broken;
    }
    if (!decoded)
        return Verdict::gave_up;
    if (!library_.decode(file, std::min(best.image.height, crop.y + crop.height + 1))) {
        fault_ = "the library says of what was decoded: " + library_.message();
        return Verdict::broken;
    }
    const bool equal =
        planes_are_equal(best, crop, "best") && (!portably || planes_are_equal(portable, crop, "portable"));
    return equal ? Verdict::equal : Verdict::broken;
}

OwnJpegLaw::Verdict OwnJpegLaw::check(std::span<const std::byte> file) {
    if (!best_.open(file))
        return Verdict::refused;
    std::uint64_t hash = 0xCBF29CE484222325;
    for (const std::byte byte : file)
        hash = (hash ^ static_cast<std::uint8_t>(byte)) * 0x100000001B3;
    const auto below = [&hash](std::uint32_t limit) {
        hash = hash * 6364136223846793005 + 1442695040888963407;
        return static_cast<std::uint32_t>((hash >> 33) % limit);
    };
    const ImageSize size = best_.size();
    CropBox crop{0, 0, size.width, size.height};
    if (below(4) != 0) {
        crop.x = below(size.width);
        crop.y = below(size.height);
        crop.width = 1 + below(size.width - crop.x);
        crop.height = 1 + below(size.height - crop.y);
    }
    return check(file, crop, below(4) == 0);
}

}   // namespace drawpoint::test
