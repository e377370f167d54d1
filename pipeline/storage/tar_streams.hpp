#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "pipeline/storage/tar_index.hpp"
#include "pipeline/storage/tar_input.hpp"
#include "pipeline/storage/tar_reader.hpp"

namespace drawpoint {

/// A shard of the data set.
struct TarShard {
    std::string path;
    TarIndex index;
    RegularFile file;   ///< open if it is read at random
};

/// Reserves room for `bytes`, and at once as much as most images of the data set need, so that reused buffers soon stop
/// growing.
void reserve_image(std::vector<std::byte>& contents, std::uint64_t bytes, std::uint64_t largest);

/// Throws TarError unless the block is the header of this image's member: the shard has changed since it was indexed.
void check_tar_header(const TarShard& shard, std::size_t sample, const TarBlock& header);

/// Reads shards sequentially. Of each shard, the last `held` images that were passed over are kept until they are asked
/// for. Thread-safe; threads that read the same shard take turns.
class TarStreams {
public:
    TarStreams(std::size_t open_streams, std::size_t held, std::uint64_t largest_image) noexcept;
    ~TarStreams();

    void read(const TarShard& shard, std::size_t sample, std::vector<std::byte>& contents);
    [[nodiscard]] std::uint64_t started() const noexcept { return started_.load(std::memory_order_relaxed); }

private:
    class Stream;
    Stream& lend(const TarShard& shard);

    std::size_t open_streams_, held_;
    std::uint64_t largest_;
    std::atomic<std::uint64_t> started_{0};
    std::mutex mutex_;   // guards the list and which stream is in use
    std::vector<std::unique_ptr<Stream>> streams_;
    std::uint64_t lent_ = 0;
};

}   // namespace drawpoint
