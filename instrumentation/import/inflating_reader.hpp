#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include <zlib.h>

namespace drawpoint {

/// Reads a stream that may be gzip (told by its first bytes; several members in a row too) as what it holds.
class InflatingReader {
public:
    explicit InflatingReader(std::istream&);
    InflatingReader(const InflatingReader&) = delete;
    InflatingReader& operator=(const InflatingReader&) = delete;
    ~InflatingReader();

    /// Fills `to` from the front; fewer bytes than it asks for only at the end.
    std::size_t read(char* to, std::size_t size);
    /// Why the data ends where it does; empty: it is whole.
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
