#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <drawpoint/pipeline/loader/machine/loader_policy.hpp>
#include <drawpoint/pipeline/loader/machine/read_policy.hpp>

namespace drawpoint {

/// The reads ahead of a simulated loader: the real one's rules (pipeline/read_ahead.cpp) over the same ReadPolicy,
/// without threads. A
/// sample's read is idle, reading, ready or taken; whoever comes first has it.
class ReplayReads {
public:
    static constexpr std::uint32_t nobody = ~std::uint32_t{0};

    /// A read that a reader has begun.
    struct Read {
        std::uint32_t slot = 0, at = 0;
        std::int64_t begin_ns = 0, end_ns = 0;
        std::uint32_t waiter = nobody;   // the worker that came for it too early
    };
    enum class Take : std::uint8_t { own, waits, ready };

    /// `memory`: bytes that what is read ahead may hold; 0: no limit.
    ReplayReads(std::size_t concurrency, std::size_t num_workers, std::size_t batch_size, std::uint64_t memory);
    [[nodiscard]] bool any() const noexcept { return concurrency_ != 0; }

    /// A batch was opened.
    void want(std::uint32_t slot, std::uint32_t size) noexcept;
    /// The next read to begin, by a reader that has just ended one (`running`) or one that would have to be woken.
    /// `wants(slot, at)` says whether the sample is read at all. The reader's number.
    template <class Wants>
    std::optional<std::uint32_t> begin_next(bool running, std::int64_t now_ns, Wants wants);
    /// The read of this number ended after `ns`; who waits for it.
    std::uint32_t end(std::uint32_t read, std::int64_t now_ns, bool blocked, std::uint64_t bytes) noexcept;

    /// A worker comes to a sample.
    Take take(std::uint32_t slot, std::uint32_t at, std::uint32_t worker, std::uint32_t& read) noexcept;
    /// The worker made the sample in `made_ns` from its bytes; `read` or nobody.
    void done(std::uint32_t worker, std::uint32_t read, std::int64_t made_ns) noexcept;
    /// It had read by itself.
    void read_here(std::uint32_t worker, std::int64_t ns, bool blocked) noexcept;

    [[nodiscard]] const Read& read(std::uint32_t number) const noexcept { return reads_[number]; }
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }   ///< of memory, which is kept

private:
    enum State : std::uint32_t { idle, taken, reading, ready };
    struct Wanted {
        std::uint32_t slot = 0, next = 0, size = 0;
    };
    struct Worker {
        std::uint64_t reads = 0, looked_at = 0, looked_at_ns = 0, blocked_ns = 0, samples = 0, sample_ns = 0;
        bool blocked = true;
    };
    [[nodiscard]] std::uint32_t& cell(std::uint32_t slot, std::uint32_t at) noexcept {
        return cells_[slot * batch_size_ + at];
    }

    std::size_t concurrency_, batch_size_;
    ReadPolicy policy_;
    std::vector<std::uint32_t> cells_;   // number << 2 | state
    std::vector<Read> reads_;
    std::vector<std::uint32_t> free_;
    std::vector<Worker> workers_;
    std::array<Wanted, LoaderPolicy::max_slots> wanted_{};
    std::size_t wanted_count_ = 0, active_ = 0, held_ = 0;
    std::vector<std::uint64_t> counted_;   // bytes of each buffer's memory, which it keeps
    std::uint64_t memory_, bytes_ = 0;
};

template <class Wants>
std::optional<std::uint32_t> ReplayReads::begin_next(bool running, std::int64_t now_ns, Wants wants) {
    if (!policy_.ahead() || active_ >= policy_.in_flight() || free_.empty() ||
        held_ >= (running ? policy_.hold() : policy_.wake_below()) ||
        (memory_ != 0 && bytes_ >= memory_ && counted_[free_.back()] == 0))
        return std::nullopt;
    while (wanted_count_ != 0) {
        Wanted& oldest = wanted_[0];
        while (oldest.next < oldest.size) {
            const std::uint32_t at = oldest.next++;
            if (cell(oldest.slot, at) != idle || !wants(oldest.slot, at))
                continue;
            const std::uint32_t number = free_.back();
            free_.pop_back();
            reads_[number] = {.slot = oldest.slot, .at = at, .begin_ns = now_ns};
            cell(oldest.slot, at) = number << 2 | reading;
            ++active_;
            ++held_;
            return number;
        }
        std::move(wanted_.begin() + 1, wanted_.begin() + static_cast<std::ptrdiff_t>(wanted_count_--), wanted_.begin());
    }
    return std::nullopt;
}

}   // namespace drawpoint
