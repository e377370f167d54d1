#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include <zlib.h>

namespace drawpoint {

/// Reads a stream, decompressing it if its first bytes are gzip's (also several members in a row).
class InflatingReader {
public:
    explicit InflatingReader(std::istream&);
    InflatingReader(const InflatingReader&) = delete;
    InflatingReader& operator=(const InflatingReader&) = delete;
    ~InflatingReader();

    /// Fills `to`; returns fewer bytes than requested only at the end.
    std::size_t read(char* to, std::size_t size);
    /// Why the data ends early; empty if it is complete.
    [[nodiscard]] const std::string& damage() const noexcept { return damage_; }

private:
    std::size_t inflate_into(char* to, std::size_t size);

    std::istream& from_;
    std::vector<char> input_;
    z_stream stream_{};
    bool compressed_ = false, ended_ = false;
    std::string damage_;
};

}   // namespace drawpoint
