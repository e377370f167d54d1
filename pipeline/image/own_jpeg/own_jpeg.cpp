#include "pipeline/image/own_jpeg/own_jpeg.hpp"

#include "pipeline/image/own_jpeg/jpeg_header.hpp"
#include "pipeline/image/own_jpeg/scan_decoder.hpp"
#include "pipeline/image/own_jpeg/unstuff.hpp"
#include "pipeline/image/pixels/scratch_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <new>

namespace drawpoint {

using namespace own_jpeg;

namespace {

constexpr std::size_t row_slack = 64;   // readable bytes beyond a row

std::uint32_t divided_up(std::uint32_t value, std::uint32_t by) { return (value + by - 1) / by; }

DecodeMcus best_decoder(OwnJpegDecoder::Instructions instructions) {
#if defined(DRAWPOINT_OWN_JPEG_AVX2)
    if (instructions == OwnJpegDecoder::Instructions::best && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
        return decode_mcus_avx2;
#endif
    static_cast<void>(instructions);
    return decode_mcus_portable;
}

}   // namespace

struct OwnJpegDecoder::State {
    /// What the scan's MCUs consist of, and the tables to read them.
    bool prepare() noexcept {
        std::uint32_t blocks = 0;
        scan.component_count = header.component_count;
        for (std::uint32_t c = 0; c < header.component_count; ++c) {
            const ComponentSpec& spec = header.components[c];
            DcTable& dc = dc_tables[spec.dc_table];
            AcTable& ac = ac_tables[spec.ac_table];
            if ((header.dc[spec.dc_table] != dc.spec && !dc.build(header.dc[spec.dc_table])) ||
                (header.ac[spec.ac_table] != ac.spec && !ac.build(header.ac[spec.ac_table])))
                return false;
            const auto& quantization = header.quantization[spec.quantization];
            ScanComponent& component = scan.components[c];
            component.across = spec.across;
            component.down = spec.down;
            component.coding = {&dc, &ac, quantization.data(), 32767u / std::max<std::uint32_t>(quantization[0], 1), 0};
            for (std::uint32_t y = 0; y < spec.down; ++y)
                for (std::uint32_t x = 0; x < spec.across; ++x)
                    scan.blocks[blocks++] = {c, x, y};
        }
        scan.block_count = blocks;
        // Luma goes in pairs, if it is one block it is alone; the colours go together.
        scan.pair_count = 0;
        for (std::uint32_t b = 0; b < blocks; ++b) {
            ScanPair& pair = scan.pairs[scan.pair_count++];
            pair.first = b;
            if (b + 1 < blocks && (scan.blocks[b].component != 0 || scan.blocks[b + 1].component == 0))
                ++b;
            pair.second = b;
            for (std::size_t half = 0; half < 2; ++half) {
                const std::uint32_t block = half == 0 ? pair.first : pair.second;
                const std::uint8_t* quantization = scan.components[scan.blocks[block].component].coding.quantization;
                for (std::size_t k = 0; k < 64; ++k)
                    pair.quantization.values[zigzag_places[k] + 8 * half] = quantization[k];
            }
        }
        mcu_width = 8 * scan.components[0].across;
        mcu_height = 8 * scan.components[0].down;
        mcus_across = divided_up(header.size.width, mcu_width);
        mcus_down = divided_up(header.size.height, mcu_height);
        // Every block takes at least a bit for each of its two codes, so a small file cannot ask for much memory or
        // time.
        return std::uint64_t{mcus_across} * mcus_down * blocks * 2 <= std::uint64_t{rest().size()} * 8;
    }

    [[nodiscard]] std::span<const std::byte> rest() const noexcept { return file.subspan(header.scan_begin); }

    /// Makes the data from `segment_begin` to the next marker what the reader reads.
    bool begin_segment() noexcept {
        const auto data = rest().subspan(segment_begin);
        const auto* from = reinterpret_cast<const std::uint8_t*>(data.data());
        std::uint8_t* to = unstuffed.get(rest().size() + reader_padding);
        segment = unstuff(from, data.size(), to);
        if (segment.marker == 0 || segment.marker == 0xFF)   // libjpeg would read on, perhaps beyond the end
            return false;
        std::memset(to + segment.bytes, 0, reader_padding);
        return true;
    }

    void rewind_segment() noexcept {
        const std::uint8_t* data = unstuffed.get(0);
        scan.reader = {0, data, 0};
        scan.data_end = data + segment.bytes;
        for (ScanComponent& component : scan.components)
            component.coding.prediction = 0;
    }

    /// Bits of the segment that nobody has read; negative if more was read than there is.
    [[nodiscard]] std::int64_t bits_left() const noexcept {
        return (scan.data_end - scan.reader.next) * 8 + static_cast<std::int64_t>(scan.reader.count);
    }

    /// Goes on behind the restart marker number `restart`, if it stands where it should.
    bool restart(std::uint32_t number) noexcept {
        if (bits_left() < 0 || bits_left() > 7 || segment.marker != 0xD0 + number % 8)
            return false;
        segment_begin += segment.next + 2;
        if (!begin_segment())
            return false;
        rewind_segment();
        return true;
    }

    /// What of each plane the crop needs, and room for it.
    void place(CropBox crop, YccPlanes& planes) {
        const ImageSize image = header.size;
        // One more pixel on each side.
        const std::uint32_t left = crop.x - std::min(crop.x, 1u), top = crop.y - std::min(crop.y, 1u);
        const std::uint32_t right = std::min(image.width, crop.x + crop.width + 1);
        const std::uint32_t bottom = std::min(image.height, crop.y + crop.height + 1);
        scan.mcu_columns = {left / mcu_width, divided_up(right, mcu_width)};
        scan.mcu_rows = {top / mcu_height, divided_up(bottom, mcu_height)};

        const auto stride_of = [](const ScanComponent& component, std::size_t columns) {
            return (columns * component.across * 8 + row_slack + 63) / 64 * 64;
        };
        std::size_t bytes = row_slack, whole = row_slack, begins[3] = {};   // whole: what no crop needs more than
        for (std::uint32_t c = 0; c < scan.component_count; ++c) {
            ScanComponent& component = scan.components[c];
            begins[c] = bytes;
            component.stride = stride_of(component, scan.mcu_columns.end - scan.mcu_columns.begin);
            if (component.stride % 1024 == 0)   // rows that fall on the same cache lines
                component.stride += 64;
            bytes += component.stride * (scan.mcu_rows.end - scan.mcu_rows.begin) * component.down * 8 + row_slack;
            whole += (stride_of(component, mcus_across) + 64) * mcus_down * component.down * 8 + row_slack;
        }
        std::uint8_t* memory = samples.get(reserved_bytes(bytes, whole));
        PlaneView* views[3] = {&planes.luma, &planes.blue, &planes.red};
        for (std::uint32_t c = 0; c < 3; ++c) {
            *views[c] = {};
            if (c >= scan.component_count)
                continue;
            ScanComponent& component = scan.components[c];
            component.samples = memory + begins[c];
            const std::uint32_t across = scan.components[0].across / component.across;
            const std::uint32_t down = scan.components[0].down / component.down;
            const std::uint32_t x = left / across, y = top / down;
            component.columns = {x / 8, divided_up(divided_up(right, across), 8)};
            component.rows = {y / 8, divided_up(divided_up(bottom, down), 8)};
            const std::uint32_t first_x = scan.mcu_columns.begin * component.across * 8;
            const std::uint32_t first_y = scan.mcu_rows.begin * component.down * 8;
            *views[c] = {component.samples + (y - first_y) * component.stride + (x - first_x), component.stride, x, y};
        }
        planes.sampling = header.sampling;
        planes.image = image;
    }

    bool decode() noexcept {
        // A segment that is the whole scan can be read again.
        if (!unstuffed_whole) {
            segment_begin = 0;
            if (!begin_segment())
                return false;
            unstuffed_whole = header.restart_interval == 0;
        }
        rewind_segment();
        for (ScanPair& pair : scan.pairs)
            pair.coefficients = {};
        std::uint32_t restarts = 0, until_restart = header.restart_interval != 0 ? header.restart_interval : ~0u;
        for (std::uint32_t row = 0; row < scan.mcu_rows.end; ++row)
            for (std::uint32_t column = 0; column < mcus_across;) {
                if (until_restart == 0) {
                    if (!restart(restarts++))
                        return false;
                    until_restart = header.restart_interval;
                }
                const std::uint32_t count = std::min(mcus_across - column, until_restart);
                if (!decode_mcus(scan, row, {column, column + count}))
                    return false;
                column += count;
                if (header.restart_interval != 0)
                    until_restart -= count;
            }
        return bits_left() >= 0;
    }

    JpegHeader header;
    std::span<const std::byte> file;
    ImageSize size;
    std::uint32_t mcu_width = 0, mcu_height = 0, mcus_across = 0, mcus_down = 0;
    Segment segment;
    std::size_t segment_begin = 0;   // from the scan's begin
    bool unstuffed_whole = false;
    DecodeMcus decode_mcus = nullptr;
    ScanState scan;
    std::array<DcTable, 4> dc_tables;
    std::array<AcTable, 4> ac_tables;
    ScratchBuffer<std::uint8_t, std::size_t{1} << 18> unstuffed;
    ScratchBuffer<std::uint8_t, std::size_t{1} << 20> samples;
};

OwnJpegDecoder::OwnJpegDecoder(Instructions instructions) : state_{std::make_unique<State>()} {
    state_->decode_mcus = best_decoder(instructions);
}
OwnJpegDecoder::~OwnJpegDecoder() = default;
OwnJpegDecoder::OwnJpegDecoder(OwnJpegDecoder&&) noexcept = default;
OwnJpegDecoder& OwnJpegDecoder::operator=(OwnJpegDecoder&&) noexcept = default;

bool OwnJpegDecoder::open(std::span<const std::byte> file) noexcept {
    State& state = *state_;
    state.size = {};
    state.unstuffed_whole = false;
    state.file = file;
    if (!read_header(file, state.header) || !state.prepare())
        return false;
    state.size = state.header.size;
    return true;
}

ImageSize OwnJpegDecoder::size() const noexcept { return state_->size; }

std::span<const std::byte> OwnJpegDecoder::scan() const noexcept {
    return state_->size == ImageSize{} ? std::span<const std::byte>{} : state_->rest();
}

bool OwnJpegDecoder::decode_planes(CropBox crop, YccPlanes& planes) noexcept try {
    const ImageSize size = state_->size;
    if (crop.width == 0 || crop.height == 0 || crop.x >= size.width || crop.y >= size.height ||
        crop.width > size.width - crop.x || crop.height > size.height - crop.y)
        return false;
    state_->place(crop, planes);
    return state_->decode();
} catch (const std::bad_alloc&) {
    return false;
}

}   // namespace drawpoint
