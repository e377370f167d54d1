#pragma once

#include <cstddef>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

#include <drawpoint/pipeline/loader/core/batch_source.hpp>

namespace drawpoint {

/// A pass as an input range, for programs without coroutines; made by blocking().
template <class Pass>
class BlockingRange {
public:
    using Batch = typename Pass::Batch;

    class Iterator {
    public:
        using value_type = Batch;
        using difference_type = std::ptrdiff_t;
        using iterator_concept = std::input_iterator_tag;

        Iterator() noexcept = default;
        [[nodiscard]] Batch& operator*() const noexcept { return *range_->batch_; }
        [[nodiscard]] Batch* operator->() const noexcept { return &*range_->batch_; }
        Iterator& operator++() {
            range_->draw();
            return *this;
        }
        void operator++(int) { range_->draw(); }
        [[nodiscard]] bool operator==(std::default_sentinel_t) const noexcept { return !range_->batch_; }

    private:
        friend class BlockingRange;
        explicit Iterator(BlockingRange* range) noexcept : range_{range} {}
        BlockingRange* range_ = nullptr;
    };

    explicit BlockingRange(Pass pass) noexcept : pass_{std::move(pass)} {}
    BlockingRange(const BlockingRange&) = delete;
    BlockingRange& operator=(const BlockingRange&) = delete;

    /// Draws the first batch, blocking; each call draws another.
    [[nodiscard]] Iterator begin() {
        draw();
        return Iterator{this};
    }
    [[nodiscard]] std::default_sentinel_t end() const noexcept { return std::default_sentinel; }

private:
    void draw() {
        batch_.reset();   // give it back before waiting for the next one
        batch_ = pass_.next_blocking();
    }

    Pass pass_;
    std::optional<Batch> batch_;
};

/// One pass over epoch `epoch` as a range: `for (auto& batch : drawpoint::blocking(loader))`. Each batch is given back
/// when the next one is drawn; move it out to keep it. Leaving the range early abandons what is prefetched. Use it on
/// the loop's thread, where all loaders of a runtime are used, but not inside a coroutine. The loader must outlive the
/// range. Iterating throws what next() throws; after a SampleError begin() goes on with the next batch.
template <EpochSource Loader>
    requires requires(Loader& loader, std::size_t epoch, EpochOptions options) {
        loader.epoch(epoch, options).next_blocking();
    }
[[nodiscard]] auto blocking(Loader& loader, std::size_t epoch = 0, EpochOptions options = {}) {
    return BlockingRange{loader.epoch(epoch, options)};
}
template <class Loader>
    requires(!std::is_lvalue_reference_v<Loader>)
void blocking(Loader&& loader, std::size_t epoch = 0, EpochOptions options = {}) = delete;   // the loader would be gone

}   // namespace drawpoint
