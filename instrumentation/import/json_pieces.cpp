#include "json_pieces.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace drawpoint {
namespace {

constexpr int at_end = -1;

bool is_blank(int c) noexcept { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

/// A bit mask per kind of character: the bits of those of 64 bytes that are such a character.
struct Marks {
    std::uint64_t quotes = 0, backslashes = 0, opening = 0, closing = 0;
};

Marks marks_of(const char* text) noexcept {
    Marks marks;
#ifdef __SSE2__
    for (int i = 0; i < 64; i += 16) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + i));
        const __m128i folded =
            _mm_or_si128(bytes, _mm_set1_epi8(0x20));   // brackets and braces differ in this bit only
        const auto bits = [i](__m128i where, char c) {
            return std::uint64_t{static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(where, _mm_set1_epi8(c))))}
                   << i;
        };
        marks.quotes |= bits(bytes, '"');
        marks.backslashes |= bits(bytes, '\\');
        marks.opening |= bits(folded, '{');
        marks.closing |= bits(folded, '}');
    }
#else
    for (int i = 0; i < 64; ++i) {
        const auto bit = [i](bool is_so) { return std::uint64_t{is_so} << i; };
        const char c = text[i];
        marks.quotes |= bit(c == '"');
        marks.backslashes |= bit(c == '\\');
        marks.opening |= bit(c == '{' || c == '[');
        marks.closing |= bit(c == '}' || c == ']');
    }
#endif
    return marks;
}

/// Finds the end of an object or a list, 64 bytes at a time.
struct NestedEnd {
    std::uint64_t depth = 0, in_string = 0;   // in_string: all bits or none
    bool escaped = false;                     // whether the next byte is escaped

    bool operator()(std::string_view text, std::size_t& at) noexcept {
        static_assert(JsonPieces::padding >= 64);
        for (; at < text.size(); at += std::min<std::size_t>(64, text.size() - at)) {
            const std::size_t count = std::min<std::size_t>(64, text.size() - at);
            const std::uint64_t here = count < 64 ? (std::uint64_t{1} << count) - 1 : ~std::uint64_t{0};
            const Marks marks = marks_of(text.data() + at);
            std::uint64_t quotes = marks.quotes & here & ~escapes(marks.backslashes & here, count);
            for (int shift = 1; shift < 64; shift *= 2)   // from each opening quote up to its closing one
                quotes ^= quotes << shift;
            quotes ^= in_string;
            in_string = quotes >> 63 ? ~std::uint64_t{0} : 0;
            const std::uint64_t opening = marks.opening & here & ~quotes, closing = marks.closing & here & ~quotes;
            const auto closed = static_cast<std::uint64_t>(std::popcount(closing));
            if (depth > closed) {
                depth += static_cast<std::uint64_t>(std::popcount(opening)) - closed;
                continue;
            }
            for (std::uint64_t left = opening | closing; left != 0; left &= left - 1) {
                const std::uint64_t lowest = left & -left;
                if (opening & lowest) {
                    ++depth;
                } else if (--depth == 0) {
                    at += static_cast<std::size_t>(std::countr_zero(left)) + 1;
                    return true;
                }
            }
        }
        return false;
    }

private:
    /// The bytes that follow an odd number of backslashes.
    std::uint64_t escapes(std::uint64_t backslashes, std::size_t count) noexcept {
        std::uint64_t found = std::exchange(escaped, false) ? 1 : 0;
        for (std::uint64_t left = backslashes & ~found; left != 0;) {
            const auto at = static_cast<std::size_t>(std::countr_zero(left));
            left &= left - 1;
            if (at + 1 == count) {
                escaped = true;
            } else {
                found |= std::uint64_t{1} << (at + 1);
                left &= ~found;
            }
        }
        return found;
    }
};

}   // namespace

JsonPieces::JsonPieces(Read read, std::string_view name, std::size_t block_bytes, std::size_t max_piece_bytes)
    : read_{std::move(read)},
      name_{name},
      block_{std::max<std::size_t>(block_bytes, 64)},
      max_piece_{max_piece_bytes},
      buffer_(block_ + padding) {
    most_ = buffer_.size();
}

/// Reads a block and appends it to the unused part of the buffer; false at the end of the text.
bool JsonPieces::fill() {
    if (ended_)
        return false;
    if (begin_ > 0) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        offset_ += begin_;
        end_ -= std::exchange(begin_, 0);
    }
    // The buffer is doubled for a piece longer than a block, so that it is moved a few times, not once per block.
    if (buffer_.size() < end_ + block_ + padding)
        buffer_.resize(std::max(end_ + block_ + padding, std::min(2 * buffer_.size(), max_piece_ + block_ + padding)));
    most_ = std::max(most_, buffer_.size());
    const std::size_t count = read_(buffer_.data() + end_, block_);
    end_ += count;
    ended_ = count < block_;
    return count > 0;
}

int JsonPieces::peek() { return begin_ < end_ || fill() ? static_cast<unsigned char>(buffer_[begin_]) : at_end; }

int JsonPieces::peek_past_blanks() {
    while (is_blank(peek()))
        ++begin_;
    return peek();
}

void JsonPieces::fail(std::string_view what) const {
    throw std::runtime_error{name_ + ": byte " + std::to_string(offset_ + begin_) + ": " + std::string{what}};
}

/// Calls `step` on the value that begins here, reading more blocks until `step` finds its end. Returns false if the
/// text ends inside the value.
template <class Step>
bool JsonPieces::cut_with(std::size_t& length, Step step) {
    for (std::size_t at = 0;;) {
        if (begin_ + at == end_) {
            if (at > max_piece_)
                fail("longer than " + std::to_string(max_piece_) + " bytes");
            if (!fill())
                return false;
        }
        if (step(std::string_view{buffer_.data() + begin_, end_ - begin_}, at)) {
            length = at;
            return true;
        }
    }
}

/// Finds the length of the value that begins here; false if the text ends inside it.
bool JsonPieces::cut(std::size_t& length) {
    const char first = buffer_[begin_];
    if (first == '{' || first == '[')
        return cut_with(length, NestedEnd{});
    if (first == '"')
        return cut_with(length, [escaped = false](std::string_view text, std::size_t& at) mutable {
            for (at = std::max<std::size_t>(at, 1); at < text.size(); ++at)
                if (std::exchange(escaped, false))
                    continue;
                else if (text[at] == '\\')
                    escaped = true;
                else if (text[at] == '"')
                    return ++at, true;
            return false;
        });
    return cut_with(length, [](std::string_view text, std::size_t& at) {   // a number or a word
        const auto is_end = [](char c) { return c == ',' || c == '}' || c == ']' || c == '"' || is_blank(c); };
        while (at < text.size() && !is_end(text[at]))
            ++at;
        return at < text.size();
    });
}

std::optional<JsonPieces::Piece> JsonPieces::end_early() {
    truncated_ = true;
    in_ = In::after;
    begin_ = end_;
    return std::nullopt;
}

std::optional<JsonPieces::Piece> JsonPieces::next_member() {
    for (;;) {
        int c = peek_past_blanks();
        if (c == ',' && comma_) {
            ++begin_;
            comma_ = false;
            c = peek_past_blanks();
        }
        if (c == at_end)
            return end_early();
        if (c == '}') {
            ++begin_;
            in_ = In::after;
            return next();
        }
        std::size_t length = 0;
        if (c != '"' || comma_)
            fail("expected a key or the end of the object");
        if (!cut(length))
            return end_early();
        key_.assign(buffer_.data() + begin_ + 1, length - 2);
        begin_ += length;
        c = peek_past_blanks();
        if (c == at_end)
            return end_early();
        if (c != ':')
            fail("expected ':'");
        ++begin_;
        c = peek_past_blanks();
        if (key_ == "traceEvents" && c == '[') {
            if (has_events_)
                fail("a second traceEvents");
            ++begin_;
            in_ = In::events;
            has_events_ = true;
            comma_ = false;
            return next();
        }
        if (c == at_end || !cut(length))
            return end_early();
        if (length == 0)
            fail("expected a value");
        comma_ = true;
        const Piece piece{key_, {buffer_.data() + begin_, length}, offset_ + begin_};
        begin_ += length;
        return piece;
    }
}

std::optional<JsonPieces::Piece> JsonPieces::next() {
    if (in_ == In::start) {
        if (peek() == 0xEF) {   // a byte order mark
            for (const int c : {0xEF, 0xBB, 0xBF})
                if (peek() == c)
                    ++begin_;
        }
        const int c = peek_past_blanks();
        if (c != '{' && c != '[')
            fail("not a Chrome trace: it begins with neither an object nor a list");
        ++begin_;
        list_alone_ = has_events_ = c == '[';
        in_ = list_alone_ ? In::events : In::object;
    }
    if (in_ == In::object)
        return next_member();
    if (in_ == In::events) {
        int c = peek_past_blanks();
        if (c == ',' && comma_) {
            ++begin_;
            comma_ = false;
            c = peek_past_blanks();
        }
        if (c == '{') {
            if (comma_)
                fail("expected ',' between two events");
            std::size_t length = 0;
            if (!cut(length))
                return end_early();
            comma_ = true;
            const Piece piece{{}, {buffer_.data() + begin_, length}, offset_ + begin_};
            begin_ += length;
            return piece;
        }
        if (c == at_end) {
            if (!list_alone_)   // a list on its own may lack its closing bracket, if the program was killed
                return end_early();
            in_ = In::after;
            return std::nullopt;
        }
        if (c != ']')
            fail("expected an event: an object");
        ++begin_;
        in_ = list_alone_ ? In::after : In::object;
        comma_ = true;
        return next();
    }
    if (peek_past_blanks() != at_end)
        fail("text after the end of the trace");
    return std::nullopt;
}

}   // namespace drawpoint
