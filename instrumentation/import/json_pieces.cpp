#include "json_pieces.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace drawpoint {
namespace {

constexpr int at_end = -1;

bool is_blank(int c) noexcept { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}   // namespace

JsonPieces::JsonPieces(Read read, std::string_view name, std::size_t block_bytes, std::size_t max_piece_bytes)
    : read_{std::move(read)},
      name_{name},
      block_{std::max<std::size_t>(block_bytes, 64)},
      max_piece_{max_piece_bytes},
      buffer_(block_ + padding) {
    most_ = buffer_.size();
}

/// Reads a block behind what is not yet used. False: the text is at its end.
bool JsonPieces::fill() {
    if (ended_)
        return false;
    if (begin_ > 0) {
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
        offset_ += begin_;
        end_ -= std::exchange(begin_, 0);
    }
    // A piece longer than a block doubles the buffer, so that it is moved a few times and not once a block.
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

/// How long the value is that begins here. False: the text ends inside.
bool JsonPieces::cut(std::size_t& length) {
    std::size_t at = 0, depth = 0;
    bool in_string = false;
    for (;;) {
        if (begin_ + at == end_) {
            if (at > max_piece_)
                fail("longer than " + std::to_string(max_piece_) + " bytes");
            if (!fill())
                return false;
        }
        const char* const text = buffer_.data() + begin_;
        const std::size_t have = end_ - begin_;
        while (at < have) {
            if (in_string) {
                const auto* quote = static_cast<const char*>(std::memchr(text + at, '"', have - at));
                const std::size_t stop = quote ? static_cast<std::size_t>(quote - text) : have;
                // A quote after an odd number of backslashes is one of the string's; so is what a block's end cuts off.
                std::size_t slashes = 0;
                while (slashes < stop - 1 && text[stop - 1 - slashes] == '\\')
                    ++slashes;
                at = stop;
                if (!quote)
                    break;
                ++at;
                in_string = slashes % 2 == 1;
            } else {
                const char c = text[at];
                if (c == '"') {
                    in_string = true;
                } else if (c == '{' || c == '[') {
                    ++depth;
                } else if (c == '}' || c == ']') {
                    if (depth == 0) {   // behind a bare number or word
                        length = at;
                        return true;
                    }
                    --depth;
                    if (depth == 0) {
                        length = at + 1;
                        return true;
                    }
                } else if (depth == 0 && (c == ',' || is_blank(c))) {
                    length = at;
                    return true;
                }
                ++at;
            }
            if (depth == 0 && !in_string && text[at - 1] == '"' && at > 1) {
                length = at;
                return true;
            }
        }
    }
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
            if (!list_alone_)   // the closing bracket of a list alone may be missing: a program may have been killed
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
