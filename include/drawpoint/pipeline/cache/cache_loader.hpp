#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include <drawpoint/pipeline/loader/data_loader.hpp>

namespace drawpoint {

class CacheCore;   // the copies and the way back to them; pipeline/cache_loader.cpp

/// Draws the first few batches from a loader once and serves copies of them for ever at no cost: what a training loop
/// could do if the draw were free. Passes have the loader's size. The loader outlives it and is not drawn from
/// elsewhere until the copies are made (`filled()`). Batches may outlive it. The loop's thread only.
class CacheLoader {
public:
    using Batch = drawpoint::Batch;

    /// One pass. Movable; outlives neither the loader nor the CacheLoader.
    class Pass {
    public:
        using Batch = drawpoint::Batch;
        Pass(Pass&&) noexcept;
        Pass& operator=(Pass&&) noexcept;
        ~Pass();

        /// Batches in the pass: as many as in one of the loader's.
        [[nodiscard]] std::optional<std::size_t> size() const noexcept;
        /// A cached batch; while the copies are still being made, one freshly drawn. nullopt after the last, for ever.
        /// Throws what the loader's next() throws, and std::logic_error while the user holds every cached batch. It
        /// must not be written to: the same samples come again.
        [[nodiscard]] Awaitable<std::optional<Batch>> next();
        /// next() for threads without a coroutine.
        [[nodiscard]] std::optional<Batch> next_blocking();

    private:
        friend class CacheLoader;
        Pass(CacheCore* core) noexcept;
        CacheCore* core_;
        std::size_t drawn_ = 0;
    };

    /// Keeps the first `batches` of the loader's epoch 0, 1 … 56, or all of them when there are fewer. Throws
    /// std::invalid_argument naming the value, std::bad_alloc.
    CacheLoader(DataLoader& loader, std::size_t batches);
    CacheLoader(DataLoader&& loader, std::size_t batches) = delete;
    ~CacheLoader();
    CacheLoader(const CacheLoader&) = delete;
    CacheLoader& operator=(const CacheLoader&) = delete;

    /// A pass. The epoch does not matter: every one is the same.
    [[nodiscard]] Pass epoch(std::size_t e, EpochOptions = {});

    /// Whether all copies are made, and no batch costs anything any more.
    [[nodiscard]] bool filled() const noexcept;

private:
    CacheCore* core_;
};

}   // namespace drawpoint
