#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <drawpoint/pipeline/loader/data_loader.hpp>

namespace drawpoint {

class CacheCore;   // the copies and the queue in which they come back; pipeline/cache/cache_loader.cpp

/// Draws the first few batches from a loader once and then serves copies of them for ever at no cost: the upper bound
/// of what a training loop could do if drawing were free. Its passes are as long as the loader's. The loader must
/// outlive it, and nobody else may draw from the loader until the copies are made (`filled()`). Batches may outlive it.
/// The loop's thread only.
class CacheLoader {
public:
    using Batch = drawpoint::Batch;

    /// One pass. Must not outlive the loader or the CacheLoader, nor be destroyed or moved while a draw is suspended.
    class Pass {
    public:
        using Batch = drawpoint::Batch;
        Pass(Pass&&) noexcept;
        Pass& operator=(Pass&&) noexcept;
        ~Pass();

        /// Batches in the pass, the same number as in the loader's.
        [[nodiscard]] std::optional<std::size_t> size() const noexcept;
        /// A cached batch, or a freshly drawn one while the copies are being made; nullopt after the last, for ever.
        /// The batch must not be written to, since its samples are served again. Throws what the loader's next()
        /// throws; a batch that failed is not cached. Throws std::logic_error while the user holds every cached batch,
        /// or if every one failed.
        [[nodiscard]] Awaitable<std::optional<Batch>> next();
        /// next() for callers that are not coroutines; blocks as DataLoader::Pass::next_blocking() does.
        [[nodiscard]] std::optional<Batch> next_blocking();

    private:
        friend class CacheLoader;
        Pass(CacheCore* core) noexcept;
        CacheCore* core_;
        std::size_t drawn_ = 0;
    };

    /// Caches the first `batches` batches of the loader's epoch 0, 1 … 56, or all of them if there are fewer. Throws
    /// std::invalid_argument naming the value, std::bad_alloc.
    CacheLoader(DataLoader& loader, std::size_t batches);
    CacheLoader(DataLoader&& loader, std::size_t batches) = delete;
    ~CacheLoader();
    CacheLoader(const CacheLoader&) = delete;
    CacheLoader& operator=(const CacheLoader&) = delete;

    /// A pass, of the loader's length. The arguments have no influence, except that a `first_batch` other than 0 throws
    /// std::invalid_argument.
    [[nodiscard]] Pass epoch(std::size_t e, EpochOptions = {});

    /// Whether all copies are made, so that draws cost nothing from now on.
    [[nodiscard]] bool filled() const noexcept;

private:
    CacheCore* core_;
};

}   // namespace drawpoint
