#include <drawpoint/pipeline/loader/cache_loader.hpp>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include <drawpoint/pipeline/loader/machine/detail/loader_policy.hpp>

#include "pipeline/loader/core/loader_core.hpp"

namespace drawpoint {

static_assert(BatchSource<CacheLoader::Pass> && EpochSource<CacheLoader>);

/// The copies, in slots whose memory is written once: it may be lent again while somebody still holds it.
class CacheCore final : public LoaderCore {
public:
    CacheCore(DataLoader& loader, const SampleLayout& layout, std::size_t batches)
        : LoaderCore{layout, loader.memory_plan().slot_samples, batches, loader.options().collate != nullptr},
          loader_{&loader},
          wanted_{batches} {}

    [[nodiscard]] std::size_t size() const noexcept { return loader_->batches_per_epoch(); }
    [[nodiscard]] bool filled() const noexcept { return copies_ == wanted_; }
    [[nodiscard]] DataLoader::Pass& source() {
        if (!source_)
            source_.emplace(loader_->epoch(0));
        return *source_;
    }

    /// `drawn`, or what comes again once the source has no more to keep.
    Batch keep_or_lend(const std::optional<Batch>& drawn) {
        if (drawn)
            return keep(*drawn);
        wanted_ = copies_;
        source_.reset();
        return lend_next();
    }

    void shut_down() noexcept {
        source_.reset();
        close(out_);
    }

    Batch lend_next() {
        if (gate_.has_slots())
            out_ &= ~gate_.take();
        for (std::size_t tried = 0; tried < copies_; ++tried) {
            const std::size_t i = next_;
            next_ = next_ + 1 == copies_ ? 0 : next_ + 1;
            if ((out_ >> i & 1) == 0) {
                out_ |= std::uint64_t{1} << i;
                return lend(static_cast<std::uint32_t>(i));
            }
        }
        throw std::logic_error{"next(): all " + std::to_string(copies_) +
                               " cached batches are held or failed; give one back or cache more"};
    }

private:
    ~CacheCore() override = default;
    bool asks_holder() const noexcept override { return false; }

    Batch keep(const Batch& drawn) {
        Slot& s = slots_[copies_];
        furnish(s);
        s.size = static_cast<std::uint32_t>(drawn.size());
        s.epoch = drawn.epoch();
        s.number = static_cast<std::uint32_t>(drawn.number());
        std::copy(drawn.indices().begin(), drawn.indices().end(), s.indices.get());
        std::copy(drawn.targets().begin(), drawn.targets().end(), s.memory->targets());
        if (s.collation) {
            s.collation->batch.clear();   // of a copy that memory ran out for
            for (const BatchPart& part : drawn.parts())
                std::ranges::copy(part.data(), s.collation->batch.add(part.name(), part.type(), part.shape()).begin());
        } else {
            std::memcpy(s.memory->data(), drawn.data().data(), drawn.data().size());
        }
        out_ |= std::uint64_t{1} << copies_;
        ++copies_;
        if (filled())
            source_.reset();
        return lend(static_cast<std::uint32_t>(copies_ - 1));
    }

    DataLoader* loader_;
    std::optional<DataLoader::Pass> source_;
    std::size_t wanted_, copies_ = 0, next_ = 0;
    std::uint64_t out_ = 0;   // lent, as far as known: the gate says what came back
};

CacheLoader::CacheLoader(DataLoader& loader, std::size_t batches) {
    constexpr std::size_t most = LoaderPolicy::max_slots;
    if (batches < 1 || batches > most)
        throw std::invalid_argument{"cached batches must be 1 to " + std::to_string(most) + ", got " +
                                    std::to_string(batches)};
    core_ = new CacheCore{loader, loader.layout(), std::min(batches, loader.batches_per_epoch())};
}

CacheLoader::~CacheLoader() {
    core_->shut_down();
    core_->release();
}

CacheLoader::Pass CacheLoader::epoch(std::size_t, EpochOptions options) {
    if (options.first_batch != 0)
        throw std::invalid_argument{"first_batch must be 0 for a CacheLoader, got " +
                                    std::to_string(options.first_batch)};
    return Pass{core_};
}
bool CacheLoader::filled() const noexcept { return core_->filled(); }

CacheLoader::Pass::Pass(CacheCore* core) noexcept : core_{core} { core_->retain(); }
CacheLoader::Pass::Pass(Pass&& other) noexcept : core_{std::exchange(other.core_, nullptr)}, drawn_{other.drawn_} {}

CacheLoader::Pass& CacheLoader::Pass::operator=(Pass&& other) noexcept {
    Pass before{std::move(*this)};
    core_ = std::exchange(other.core_, nullptr);
    drawn_ = other.drawn_;
    return *this;
}

CacheLoader::Pass::~Pass() {
    if (core_)
        core_->release();
}

std::optional<std::size_t> CacheLoader::Pass::size() const noexcept { return core_->size(); }

Awaitable<std::optional<Batch>> CacheLoader::Pass::next() {
    if (drawn_ == core_->size())
        co_return std::nullopt;
    if (!core_->filled()) {
        DataLoader::Pass& source = core_->source();
        CacheCore* const core = core_;
        try {
            auto drawn = co_await source.next();
            ++drawn_;
            co_return core->keep_or_lend(drawn);
        } catch (const SampleError&) {   // uses its batch up; after any other error nothing was taken
            ++drawn_;
            throw;
        }
    }
    Batch lent = core_->lend_next();
    ++drawn_;
    co_return std::move(lent);
}

std::optional<Batch> CacheLoader::Pass::next_blocking() {
    if (drawn_ == core_->size())
        return std::nullopt;
    if (!core_->filled()) {
        try {
            const auto drawn = core_->source().next_blocking();
            ++drawn_;
            return core_->keep_or_lend(drawn);
        } catch (const SampleError&) {
            ++drawn_;
            throw;
        }
    }
    Batch lent = core_->lend_next();
    ++drawn_;
    return lent;
}

}   // namespace drawpoint
