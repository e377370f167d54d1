#pragma once

#include <iterator>
#include <ostream>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace drawpoint {

/// Writes formatted text to a stream in blocks of 64 KiB. `flush()` writes the last one.
class TextStream {
public:
    explicit TextStream(std::ostream& out) noexcept : out_{&out} {}
    TextStream(const TextStream&) = delete;
    TextStream& operator=(const TextStream&) = delete;

    template <class... Args>
    void print(fmt::format_string<Args...> form, Args&&... args) {
        fmt::format_to(std::back_inserter(buffer_), form, std::forward<Args>(args)...);
        spill();
    }
    void put(std::string_view text) {
        buffer_.append(text);
        spill();
    }
    void flush() {
        out_->write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
        buffer_.clear();
        out_->flush();
    }

private:
    void spill() {
        if (buffer_.size() >= (64u << 10)) {
            out_->write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
            buffer_.clear();
        }
    }

    std::ostream* out_;
    fmt::memory_buffer buffer_;
};

}   // namespace drawpoint
