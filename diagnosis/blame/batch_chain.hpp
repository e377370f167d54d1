#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <drawpoint/diagnosis/blame/blame.hpp>

#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>
#include <drawpoint/instrumentation/ledger/detail/order_loss.hpp>

namespace drawpoint {

/// Cuts draws into pieces, by what the loop was waiting for.
class BatchChain {
public:
    /// All must outlive it.
    BatchChain(const Ledger& ledger, const LoaderRows& rows, const OrderLoss& order)
        : ledger_{&ledger}, rows_{&rows}, order_{&order} {}

    /// Appends the pieces of this step's draw, in order. Returns the last sample of its batch, or `nothing`.
    std::uint32_t cut(std::size_t step, std::vector<BlamePiece>&);

private:
    /// Of the pieces from `first` on, what lies outside this time is hidden.
    void hide(std::vector<BlamePiece>&, std::size_t first, TimeRange dry);
    void walk(std::uint32_t batch, TimeRange);
    void walk_samples(std::uint32_t batch, bool inline_loader);
    void walk_stages(std::uint32_t sample);
    void walk_admission(const BatchRow&);
    void walk_order(const BatchRow&);
    void until(std::int64_t stamp_ns, BlamePiece what);
    void take(std::int64_t ns, BlamePiece what);

    const Ledger* ledger_;
    const LoaderRows* rows_;
    const OrderLoss* order_;
    std::vector<BlamePiece> backwards_;
    std::vector<std::uint32_t> by_end_;      // samples of a batch, by their end
    std::int64_t from_ns_ = 0, at_ns_ = 0;   // [from, at) is still to be explained
};

/// The sample of the batch that ended last; `nothing` if none is recorded.
[[nodiscard]] std::uint32_t last_sample(const Ledger&, const LoaderRows&, std::uint32_t batch) noexcept;

}   // namespace drawpoint
