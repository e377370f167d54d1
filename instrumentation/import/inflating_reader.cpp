#include "inflating_reader.hpp"

#include <istream>
#include <new>

namespace drawpoint {
namespace {

constexpr std::size_t input_bytes = 1u << 16;
constexpr int gzip_only = 15 + 16;   // zlib's window bits; + 16: only gzip headers

}   // namespace

InflatingReader::InflatingReader(std::istream& from) : from_{from}, input_(input_bytes) {
    from_.read(input_.data(), 2);
    const auto count = static_cast<uInt>(from_.gcount());
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = count;
    compressed_ = count == 2 && input_[0] == '\x1f' && input_[1] == '\x8b';
    if (compressed_ && inflateInit2(&stream_, gzip_only) != Z_OK)
        throw std::bad_alloc{};
}

InflatingReader::~InflatingReader() {
    if (compressed_)
        inflateEnd(&stream_);
}

std::size_t InflatingReader::read(char* to, std::size_t size) {
    std::size_t count = 0;
    while (count < size && !ended_) {
        if (compressed_) {
            count += inflate_into(to + count, size - count);
        } else if (stream_.avail_in > 0) {   // the two bytes read to detect compression
            to[count++] = static_cast<char>(*stream_.next_in++);
            --stream_.avail_in;
        } else {
            from_.read(to + count, static_cast<std::streamsize>(size - count));
            count += static_cast<std::size_t>(from_.gcount());
            ended_ = from_.gcount() == 0;
        }
    }
    return count;
}

std::size_t InflatingReader::inflate_into(char* to, std::size_t size) {
    if (stream_.avail_in == 0) {
        from_.read(input_.data(), static_cast<std::streamsize>(input_.size()));
        stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
        stream_.avail_in = static_cast<uInt>(from_.gcount());
        if (stream_.avail_in == 0) {
            ended_ = true;
            damage_ = "the compressed data ends too early";
            return 0;
        }
    }
    stream_.next_out = reinterpret_cast<Bytef*>(to);
    stream_.avail_out = static_cast<uInt>(size);
    const int result = inflate(&stream_, Z_NO_FLUSH);
    const std::size_t count = size - stream_.avail_out;
    if (result == Z_STREAM_END) {
        if (stream_.avail_in == 0 && from_.peek() == std::istream::traits_type::eof())
            ended_ = true;
        else
            inflateReset(&stream_);   // another member follows
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
        ended_ = true;
        damage_ = std::string{"the compressed data is damaged ("} + (stream_.msg ? stream_.msg : "unknown") + ")";
    }
    return count;
}

}   // namespace drawpoint
