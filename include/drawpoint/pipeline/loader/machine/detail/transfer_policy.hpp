#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace drawpoint {

/// The decisions of copying batches to a device: which buffer a batch is copied to, and when that buffer, and the host
/// memory behind it, may be used again. A buffer is *free*; then *ahead*: its copy is issued, its batch not drawn; then
/// *out* with the user until the batch is given back. Independently of that its copy is *under way* until somebody has
/// seen that it ended. Free again is a buffer that is neither ahead nor out nor being copied to.
class TransferPolicy {
public:
    static constexpr std::size_t most_buffers = 64;

    /// `buffers`: 1 … most_buffers.
    explicit constexpr TransferPolicy(std::size_t buffers) noexcept : buffers_{buffers} {
        for (std::size_t i = 0; i < buffers; ++i)
            free_.push(i);
    }

    [[nodiscard]] constexpr std::size_t buffers() const noexcept { return buffers_; }
    [[nodiscard]] constexpr bool may_issue() const noexcept { return free_.size != 0; }
    /// The buffer that has been free the longest: the device may still work on those that came back just now.
    [[nodiscard]] constexpr std::size_t next() const noexcept { return free_.front(); }
    /// Takes that buffer.
    constexpr std::size_t issue() noexcept {
        const std::size_t buffer = free_.pop();
        ahead_.push(buffer);
        copying_.push(buffer);
        uses_[buffer] = {.is_taken = true, .is_copied_to = true};
        return buffer;
    }
    [[nodiscard]] constexpr std::size_t ahead() const noexcept { return ahead_.size; }
    /// The buffer of the next batch, whose copy is issued.
    [[nodiscard]] constexpr std::size_t drawn_next() const noexcept { return ahead_.front(); }
    /// Draws that batch.
    constexpr std::size_t draw() noexcept { return ahead_.pop(); }
    constexpr void give_back(std::size_t buffer) noexcept {
        uses_[buffer].is_taken = false;
        free_if_unused(buffer);
    }
    /// The buffer of the oldest copy under way: copies end in the order in which they were issued.
    [[nodiscard]] constexpr std::optional<std::size_t> copying() const noexcept {
        return copying_.size == 0 ? std::nullopt : std::optional{copying_.front()};
    }
    /// That copy has ended.
    constexpr void copied() noexcept {
        const std::size_t buffer = copying_.pop();
        uses_[buffer].is_copied_to = false;
        free_if_unused(buffer);
    }
    /// Whether its batch is ahead or out.
    [[nodiscard]] constexpr bool is_taken(std::size_t buffer) const noexcept { return uses_[buffer].is_taken; }
    [[nodiscard]] constexpr bool is_copied_to(std::size_t buffer) const noexcept { return uses_[buffer].is_copied_to; }

private:
    struct Use {
        bool is_taken = false, is_copied_to = false;
    };
    struct Queue {
        std::array<std::uint8_t, most_buffers> entries{};
        std::size_t begin = 0, size = 0;
        constexpr void push(std::size_t buffer) noexcept {
            entries[(begin + size++) % most_buffers] = static_cast<std::uint8_t>(buffer);
        }
        [[nodiscard]] constexpr std::size_t front() const noexcept { return entries[begin]; }
        constexpr std::size_t pop() noexcept {
            const std::size_t buffer = entries[begin];
            begin = (begin + 1) % most_buffers;
            --size;
            return buffer;
        }
    };

    constexpr void free_if_unused(std::size_t buffer) noexcept {
        if (!uses_[buffer].is_taken && !uses_[buffer].is_copied_to)
            free_.push(buffer);
    }

    std::size_t buffers_;
    Queue free_, ahead_, copying_;
    std::array<Use, most_buffers> uses_{};
};

}   // namespace drawpoint
