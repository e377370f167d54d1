#include "pipeline/storage/tar_input.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <drawpoint/pipeline/storage/file_reader.hpp>
#include <drawpoint/pipeline/storage/tar_shards.hpp>

namespace drawpoint {

namespace {

constexpr unsigned char gzip_magic[] = {0x1f, 0x8b};
constexpr unsigned char zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};

/// Reads until `out` is full or the file ends.
std::size_t read_at(int descriptor, std::span<std::byte> out, std::uint64_t offset, const char* path) {
    std::size_t done = 0;
    while (done < out.size()) {
        const ssize_t got =
            ::pread(descriptor, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
        if (got > 0)
            done += static_cast<std::size_t>(got);
        else if (got == 0)
            break;
        else if (errno != EINTR)
            detail::fail_io("cannot read", path, errno);
    }
    return done;
}

}   // namespace

struct TarInput::Decompressors {
    z_stream gzip{};
    bool has_gzip = false;
    ZSTD_DStream* zstd = nullptr;

    ~Decompressors() {
        if (has_gzip)
            inflateEnd(&gzip);
        ZSTD_freeDStream(zstd);
    }
    void begin_gzip() {
        // 16: with a gzip header and checksum, which inflate then verifies.
        if (!has_gzip && inflateInit2(&gzip, 16 + MAX_WBITS) != Z_OK)
            throw std::bad_alloc{};
        has_gzip = true;
        inflateReset(&gzip);
    }
    void begin_zstd() {
        if (!zstd && !(zstd = ZSTD_createDStream()))
            throw std::bad_alloc{};
        ZSTD_DCtx_reset(zstd, ZSTD_reset_session_only);
    }
};

TarInput::TarInput(std::size_t buffer_bytes)
    : buffer_(buffer_bytes), decompressors_{std::make_unique<Decompressors>()} {}
TarInput::~TarInput() = default;

void TarInput::open(const char* path) {
    close();
    file_ = RegularFile{path};
    path_ = path;
    position_ = file_at_ = 0;
    begin_ = end_ = 0;
    in_frame_ = false;
    refill();
    const auto begins_with = [this](std::span<const unsigned char> magic) {
        return end_ >= magic.size() && std::memcmp(buffer_.data(), magic.data(), magic.size()) == 0;
    };
    compression_ = begins_with(gzip_magic)   ? TarCompression::gzip
                   : begins_with(zstd_magic) ? TarCompression::zstd
                                             : TarCompression::none;
    if (compression_ != TarCompression::none && passed_.empty())
        passed_.resize(std::size_t{1} << 16);
    if (compression_ == TarCompression::zstd)
        decompressors_->begin_zstd();
}

bool TarInput::refill() {
    begin_ = 0;
    end_ = 0;   // stays so if reading throws
    end_ = read_at(file_.descriptor(), buffer_, file_at_, path_);
    file_at_ += end_;
    return end_ > 0;
}

std::size_t TarInput::inflate_some(std::span<std::byte> out) {
    if (!in_frame_) {
        while (begin_ < end_ && buffer_[begin_] == std::byte{0})   // padding, as of tapes
            ++begin_;
        if (begin_ == end_)
            return 0;
        if (buffer_[begin_] != std::byte{gzip_magic[0]})
            throw TarError{path_, file_position(), "something that is not gzip follows the gzip data"};
        decompressors_->begin_gzip();
        in_frame_ = true;
    }
    z_stream& gzip = decompressors_->gzip;
    gzip.next_in = reinterpret_cast<Bytef*>(buffer_.data() + begin_);
    gzip.avail_in = static_cast<uInt>(end_ - begin_);
    gzip.next_out = reinterpret_cast<Bytef*>(out.data());
    gzip.avail_out = static_cast<uInt>(std::min<std::size_t>(out.size(), std::size_t{1} << 30));
    const uInt room = gzip.avail_out;
    const int result = ::inflate(&gzip, Z_NO_FLUSH);
    begin_ = end_ - gzip.avail_in;
    if (result == Z_STREAM_END)
        in_frame_ = false;
    else if (result == Z_MEM_ERROR)
        throw std::bad_alloc{};
    else if (result != Z_OK && result != Z_BUF_ERROR)
        throw TarError{path_, file_position(),
                       std::string{"of the compressed file: broken gzip data"} +
                           (gzip.msg ? std::string{": "} + gzip.msg : std::string{})};
    return room - gzip.avail_out;
}

std::size_t TarInput::unzstd_some(std::span<std::byte> out) {
    ZSTD_inBuffer in{buffer_.data() + begin_, end_ - begin_, 0};
    ZSTD_outBuffer to{out.data(), out.size(), 0};
    const std::size_t result = ZSTD_decompressStream(decompressors_->zstd, &to, &in);
    begin_ += in.pos;
    if (ZSTD_isError(result))
        throw TarError{path_, file_position(),
                       std::string{"of the compressed file: broken zstd data: "} + ZSTD_getErrorName(result)};
    in_frame_ = result != 0;
    return to.pos;
}

std::size_t TarInput::read(std::span<std::byte> out) {
    std::size_t done = 0;
    while (done < out.size()) {
        const std::span<std::byte> rest = out.subspan(done);
        std::size_t got = 0;
        if (compression_ == TarCompression::none) {
            if (begin_ == end_ && rest.size() >= buffer_.size()) {
                got = read_at(file_.descriptor(), rest, file_at_, path_);
                file_at_ += got;
            } else if (begin_ < end_ || refill()) {
                got = std::min(rest.size(), end_ - begin_);
                std::memcpy(rest.data(), buffer_.data() + begin_, got);
                begin_ += got;
            }
            if (got == 0)
                break;
        } else {
            const bool more = begin_ < end_ || refill();
            if (!more && !in_frame_)
                break;
            got = compression_ == TarCompression::gzip ? inflate_some(rest) : unzstd_some(rest);
            if (!more && got == 0 && in_frame_)
                throw TarError{path_, file_position(), "of the compressed file: it ends too early"};
        }
        done += got;
        position_ += got;
    }
    return done;
}

void TarInput::skip(std::uint64_t bytes) {
    if (compression_ == TarCompression::none) {
        const std::uint64_t buffered = end_ - begin_;
        if (bytes <= buffered) {
            begin_ += static_cast<std::size_t>(bytes);
        } else {
            file_at_ += bytes - buffered;
            begin_ = end_ = 0;
        }
        position_ += bytes;
        return;
    }
    while (bytes > 0) {
        const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, passed_.size()));
        if (read({passed_.data(), piece}) < piece)
            throw TarError{path_, position_, "the archive ends too early"};
        bytes -= piece;
    }
}

}   // namespace drawpoint
