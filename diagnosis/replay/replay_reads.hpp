#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <drawpoint/pipeline/loader/machine/detail/read_machine.hpp>

namespace drawpoint {

/// The reads ahead of a simulated loader, as a ReadMachine decides them. A sample's read is idle, reading, ready or
/// taken; the reader or the worker takes it, whoever comes first.
class ReplayReads {
public:
    static constexpr std::uint32_t nobody = ~std::uint32_t{0};

    /// A read that a reader has begun.
    struct Read {
        std::uint32_t slot = 0, at = 0;
        std::int64_t begin_ns = 0, end_ns = 0;
        std::uint32_t waiter = nobody;   // the worker that waits for it
    };
    enum class Take : std::uint8_t { own, waits, ready };

    /// `memory`: the most bytes that reads ahead may hold; 0: no limit.
    ReplayReads(std::size_t concurrency, std::size_t num_workers, std::size_t batch_size, std::uint64_t memory);
    [[nodiscard]] bool any() const noexcept { return concurrency_ != 0; }

    /// A batch was opened.
    void want(std::uint32_t slot, std::uint32_t size) noexcept;
    /// Begins the next read, by a reader that has just ended one (`running`) or by one that would have to be woken, and
    /// returns its number. `wants(slot, at)` says whether the sample is read at all.
    template <class Wants>
    std::optional<std::uint32_t> begin_next(bool running, std::int64_t now_ns, Wants wants);
    /// A read has ended. Returns the worker that waits for it, or `nobody`.
    std::uint32_t end(std::uint32_t read, std::int64_t now_ns, bool blocked, std::uint64_t bytes) noexcept;

    /// A worker comes to a sample. Sets `read` to the number of its read, or to `nobody`.
    Take take(std::uint32_t slot, std::uint32_t at, std::uint32_t worker, std::uint32_t& read) noexcept;
    /// The worker has made the sample from its bytes in `made_ns`. `read` may be `nobody`.
    void done(std::uint32_t worker, std::uint32_t read, std::int64_t made_ns) noexcept;
    /// The worker has read the sample itself, in `ns`.
    void read_here(std::uint32_t worker, std::int64_t ns, bool blocked) noexcept;

    [[nodiscard]] const Read& read(std::uint32_t number) const noexcept { return reads_[number]; }
    /// The most memory held at a time.
    [[nodiscard]] std::uint64_t most_bytes() const noexcept { return machine_.most_bytes(); }

private:
    enum State : std::uint32_t { idle, taken, reading, ready };
    /// Whether to wake the sleeping reader, which takes no time here.
    [[nodiscard]] bool calls_reader() noexcept;
    [[nodiscard]] ReadMachine::Buffer next_buffer() const noexcept {
        return {!free_.empty(), !free_.empty() && counted_[free_.back()] != 0};
    }
    [[nodiscard]] std::uint32_t& cell(std::uint32_t slot, std::uint32_t at) noexcept {
        return cells_[slot * batch_size_ + at];
    }

    std::size_t concurrency_, batch_size_;
    ReadMachine machine_;
    std::vector<std::uint32_t> cells_;   // number << 2 | state
    std::vector<Read> reads_;
    std::vector<std::uint32_t> free_;
    std::vector<ReadReporter> workers_;
    std::vector<std::uint64_t> counted_;   // bytes of each buffer's memory
};

template <class Wants>
std::optional<std::uint32_t> ReplayReads::begin_next(bool running, std::int64_t now_ns, Wants wants) {
    if (running ? !machine_.goes_on(next_buffer()) : !calls_reader())
        return std::nullopt;
    while (const std::optional<ReadMachine::Place> place = machine_.next()) {
        std::uint32_t& read = cell(place->slot, place->at);
        if (read != idle || !wants(place->slot, place->at))
            continue;
        const std::uint32_t number = free_.back();
        free_.pop_back();
        reads_[number] = {.slot = place->slot, .at = place->at, .begin_ns = now_ns};
        read = number << 2 | reading;
        machine_.begun();
        return number;
    }
    return std::nullopt;
}

}   // namespace drawpoint
