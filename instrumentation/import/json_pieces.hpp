#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace drawpoint {

/// Splits the JSON text of a Chrome trace at the ends of its events, reading block by block: `{"key": value, …,
/// "traceEvents": [{…}, {…}], "key": value}`, or only the list. Memory: two blocks and twice the longest piece.
class JsonPieces {
public:
    /// Bytes behind the end of a piece that may be read.
    static constexpr std::size_t padding = 64;

    /// An element of `traceEvents` (`key` empty), or another member of the outermost object.
    struct Piece {
        std::string_view key, text;   ///< valid until the next call of `next`
        std::uint64_t offset = 0;     ///< of `text` in the whole text
    };
    using Read = std::function<std::size_t(char* to, std::size_t size)>;

    /// `name` is used for the file in errors. `read` returns fewer bytes than requested only at the end.
    JsonPieces(Read read, std::string_view name, std::size_t block_bytes, std::size_t max_piece_bytes);

    /// The next complete piece, or nullopt at the end. Throws std::runtime_error naming the byte where the text is not
    /// JSON or not a trace.
    [[nodiscard]] std::optional<Piece> next();
    /// Whether the text ends before its outermost bracket closes; for a list on its own, inside an element.
    [[nodiscard]] bool truncated() const noexcept { return truncated_; }
    [[nodiscard]] bool has_events() const noexcept { return has_events_; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return offset_ + end_; }
    [[nodiscard]] std::size_t buffer_bytes() const noexcept { return most_; }

private:
    enum class In { start, object, events, after };

    bool fill();
    int peek();
    int peek_past_blanks();
    template <class Step>
    bool cut_with(std::size_t& length, Step);
    bool cut(std::size_t& length);
    [[noreturn]] void fail(std::string_view what) const;
    std::optional<Piece> end_early();
    std::optional<Piece> next_member();

    Read read_;
    std::string name_, key_;
    std::size_t block_, max_piece_, most_ = 0;
    std::vector<char> buffer_;
    std::size_t begin_ = 0, end_ = 0;   // the unused part of the buffer
    std::uint64_t offset_ = 0;          // of the buffer's first byte in the text
    In in_ = In::start;
    bool list_alone_ = false, truncated_ = false, has_events_ = false, ended_ = false, comma_ = false;
};

}   // namespace drawpoint
