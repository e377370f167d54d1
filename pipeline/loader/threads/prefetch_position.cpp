// PrefetchCore's functions for its position: which batches are drawn, and going on from there.
#include <stdexcept>
#include <utility>

#include "pipeline/loader/threads/prefetch_core.hpp"

namespace drawpoint {

LoaderState PrefetchCore::state() const {
    if (!fingerprints_)
        fingerprints_.emplace(fingerprint_of(maker_.source()), fingerprint_of(*sampler_));
    const OrderShare share = sampler_->share();
    return {.data = fingerprints_->first,
            .order = fingerprints_->second,
            .seed = options_.seed,
            .batch_size = options_.batch_size,
            .drop_last = options_.drop_last,
            .rank = share.rank,
            .ranks = share.ranks,
            .batches = batches_per_epoch_,
            .epoch = progress_.epoch(),
            .end = counts_draws_ ? drawn() : progress_.end(),
            .undrawn = progress_.undrawn()};
}

void PrefetchCore::restore(const LoaderState& from) {
    if (pass_left_ != 0)
        throw std::logic_error{"DataLoader::restore: the pass must be used up or destroyed first"};
    check_process();
    LoaderState to = continued_by(from, state());
    go_on_at(to.epoch, to.end, std::move(to.undrawn));
}

void PrefetchCore::go_on_at(std::uint64_t epoch, std::uint64_t end, std::vector<std::uint64_t> undrawn) {
    if (end > batches_per_epoch_)
        throw std::invalid_argument{"first_batch must be at most " + std::to_string(batches_per_epoch_) +
                                    ", the batches of a pass, got " + std::to_string(end)};
    {
        const auto guard = guarded_.lock();
        if (!stopping())
            abandon(*guard);   // what was prefetched of the next pass
    }
    progress_.begin(epoch, end, std::move(undrawn));
    counts_draws_ = false;
    is_restored_ = true;
}

void PrefetchCore::begin_progress(std::uint64_t epoch) {
    if (!std::exchange(is_restored_, false) || epoch != progress_.epoch())
        progress_.begin(epoch, 0, {});
    pass_left_ = batches_per_epoch_ - progress_.drawn();
    pass_errors_ = 0;
    counts_draws_ = !may_overtake_ && progress_.undrawn().empty();
}

void PrefetchCore::note_progress() noexcept {
    if (std::exchange(counts_draws_, false))
        progress_.reach(drawn());
}

}   // namespace drawpoint
