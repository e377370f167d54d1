#include "pipeline/storage/tar_output.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <zlib.h>
#include <zstd.h>

#include "pipeline/storage/file_writer.hpp"
#include "pipeline/storage/tar_reader.hpp"

namespace drawpoint {

namespace {

constexpr std::size_t longest_ustar_name = 100, longest_ustar_prefix = 155;
constexpr std::size_t sink_buffer = std::size_t{1} << 18;

struct Split {
    std::string_view prefix, name;
};

/// The name as a ustar header holds it, cut at a slash if it is long; nullopt: it cannot.
std::optional<Split> ustar_name(std::string_view name) {
    if (name.size() <= longest_ustar_name)
        return Split{{}, name};
    const std::size_t slash = name.find('/', name.size() - longest_ustar_name - 1);
    if (slash == name.npos || slash == 0 || slash > longest_ustar_prefix || slash + 1 == name.size())
        return std::nullopt;
    return Split{name.substr(0, slash), name.substr(slash + 1)};
}

/// "LENGTH path=NAME\n", where LENGTH counts itself.
std::string pax_path(std::string_view name) {
    const std::string rest = " path=" + std::string{name} + '\n';
    std::size_t length = rest.size();
    while (std::to_string(length).size() + rest.size() != length)
        length = std::to_string(length).size() + rest.size();
    return std::to_string(length) + rest;
}

}   // namespace

class TarOutput::Sink {
public:
    Sink(std::filesystem::path path, TarCompression compression)
        : file_{std::move(path)}, compression_{compression}, buffer_(sink_buffer) {
        // 16: with a gzip header, which bears neither date nor name.
        if (compression_ == TarCompression::gzip) {
            gzip_.reset(new z_stream{});
            if (deflateInit2(gzip_.get(), Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
                Z_OK)
                throw std::bad_alloc{};
        }
        if (compression_ == TarCompression::zstd) {
            zstd_.reset(ZSTD_createCCtx());
            if (!zstd_)
                throw std::bad_alloc{};
            ZSTD_CCtx_setParameter(zstd_.get(), ZSTD_c_checksumFlag, 1);
        }
    }

    void write(std::span<const std::byte> bytes, bool last) {
        if (compression_ == TarCompression::none) {
            file_.write(bytes);
        } else if (compression_ == TarCompression::gzip) {
            z_stream& gzip = *gzip_;
            gzip.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(bytes.data()));
            gzip.avail_in = static_cast<uInt>(bytes.size());   // a member's contents at most
            int result = Z_OK;
            do {
                gzip.next_out = reinterpret_cast<Bytef*>(buffer_.data());
                gzip.avail_out = static_cast<uInt>(buffer_.size());
                result = ::deflate(&gzip, last ? Z_FINISH : Z_NO_FLUSH);
                file_.write({buffer_.data(), buffer_.size() - gzip.avail_out});
            } while (gzip.avail_in > 0 || gzip.avail_out == 0 || (last && result != Z_STREAM_END));
        } else {
            ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
            std::size_t left = 0;
            do {
                ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
                left = ZSTD_compressStream2(zstd_.get(), &out, &in, last ? ZSTD_e_end : ZSTD_e_continue);
                if (ZSTD_isError(left))
                    throw std::runtime_error{file_.path().string() + ": " + ZSTD_getErrorName(left)};
                file_.write({buffer_.data(), out.pos});
            } while (in.pos < in.size || (last && left > 0));
        }
    }

    void close() { file_.close(); }

private:
    struct Free {
        void operator()(z_stream* gzip) const noexcept {
            deflateEnd(gzip);   // does nothing to one that was never begun
            delete gzip;
        }
        void operator()(ZSTD_CCtx* zstd) const noexcept { ZSTD_freeCCtx(zstd); }
    };

    FileWriter file_;
    TarCompression compression_;
    std::vector<std::byte> buffer_;
    std::unique_ptr<z_stream, Free> gzip_;
    std::unique_ptr<ZSTD_CCtx, Free> zstd_;
};

TarOutput::TarOutput(std::filesystem::path path, TarCompression compression)
    : sink_{std::make_unique<Sink>(std::move(path), compression)} {}
TarOutput::~TarOutput() = default;

std::uint64_t TarOutput::member_bytes(std::string_view name, std::uint64_t bytes) {
    const std::uint64_t pax = ustar_name(name) ? 0 : tar_block + tar_padded(pax_path(name).size());
    return pax + tar_block + tar_padded(bytes);
}

// Two blocks of zeros, then up to a whole record of 20 blocks, as tar does.
std::uint64_t TarOutput::archive_bytes(std::uint64_t members) noexcept {
    constexpr std::uint64_t record = 20 * tar_block;
    return (members + 2 * tar_block + record - 1) / record * record;
}

void TarOutput::write(std::span<const std::byte> bytes) {
    sink_->write(bytes, false);
    position_ += bytes.size();
}

void TarOutput::write_member(std::string_view name, std::string_view prefix, char type,
                             std::span<const std::byte> contents) {
    std::array<char, tar_block> header{};
    const auto put_text = [&](std::size_t at, std::string_view text) { std::ranges::copy(text, header.data() + at); };
    const auto put_octal = [&](std::size_t at, int digits, std::uint64_t value) {
        std::array<char, 24> text{};
        std::snprintf(text.data(), text.size(), "%0*llo", digits, static_cast<unsigned long long>(value));
        put_text(at, text.data());
    };
    put_text(0, name);
    put_octal(100, 7, 0644);
    put_octal(108, 7, 0);   // owner, group: nobody's
    put_octal(116, 7, 0);
    put_octal(124, 11, contents.size());
    put_octal(136, 11, 0);   // date
    header[156] = type;
    put_text(257, std::string_view{"ustar\00000", 8});
    put_text(345, prefix);
    put_text(148, "        ");
    std::uint64_t sum = 0;
    for (const char c : header)
        sum += static_cast<unsigned char>(c);
    put_octal(148, 6, sum);
    header[154] = '\0';
    write(std::as_bytes(std::span{header}));
    write(contents);
    static constexpr std::array<std::byte, tar_block> zeros{};
    write({zeros.data(), static_cast<std::size_t>(tar_padded(contents.size()) - contents.size())});
}

std::uint64_t TarOutput::add(std::string_view name, std::span<const std::byte> contents) {
    const std::optional<Split> split = ustar_name(name);
    if (!split) {
        const std::string path = pax_path(name);
        write_member("PaxHeader", {}, 'x', std::as_bytes(std::span{path}));
    }
    const Split held = split.value_or(Split{{}, name.substr(0, longest_ustar_name)});
    const std::uint64_t offset = position_ + tar_block;
    write_member(held.name, held.prefix, '0', contents);
    return offset;
}

void TarOutput::finish() {
    const std::vector<std::byte> zeros(static_cast<std::size_t>(archive_bytes(position_) - position_));
    write(zeros);
    sink_->write({}, true);
    sink_->close();
}

}   // namespace drawpoint
