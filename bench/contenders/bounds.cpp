// The work that no loader can avoid: decoding every file, copying every row, making every item; on plain threads,
// without batches.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/storage/file_reader.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>

#include "loader.hpp"
#include "rows_file.hpp"
#include "straggler.hpp"
#include "whole_jpeg.hpp"

namespace drawpoint::bench {
namespace {

/// Calls work(i, thread) for all i < count on `threads` threads. An exception ends all of them and is rethrown.
void for_all(std::size_t count, std::size_t threads, const std::function<void(std::size_t, std::size_t)>& work) {
    std::atomic<std::size_t> next{0};
    std::exception_ptr error;
    std::atomic_flag failed;
    const auto take = [&](std::size_t thread) {
        try {
            for (std::size_t i = 0; (i = next.fetch_add(1, std::memory_order_relaxed)) < count;)
                work(i, thread);
        } catch (...) {
            if (!failed.test_and_set())
                error = std::current_exception();
            next = count;
        }
    };
    {
        std::vector<std::jthread> others;
        for (std::size_t t = 1; t < threads; ++t)
            others.emplace_back(take, t);
        take(0);
    }
    if (error)
        std::rethrow_exception(error);
}

/// A contender that delivers only the number of items.
class Bound : public Loader {
public:
    explicit Bound(const Workload& workload) : workload_{workload}, order_(workload.items) {}

    void pass(std::size_t epoch, bool /*more*/, const std::function<bool(const BatchView&)>& see) override {
        RandomSampler{workload_.items, workload_.seed}.order(epoch, order_);
        work();
        const std::vector<std::int64_t> nothing(workload_.batch_size);
        for (std::size_t done = 0; done < workload_.items; done += workload_.batch_size)
            if (!see({nullptr, std::span{nothing}.first(std::min(workload_.batch_size, workload_.items - done))}))
                return;
    }

protected:
    virtual void work() = 0;
    Workload workload_;
    std::vector<std::uint64_t> order_;
};

class DecodeBound final : public Bound {
public:
    explicit DecodeBound(const Workload& workload) : Bound{workload}, files_(workload.items) {
        const ImageFolder photos{workload.data};
        for (std::size_t i = 0; i < files_.size(); ++i)
            read_file(photos.path(i), files_[i]);
    }
    std::string describe() const override { return "libjpeg-turbo, whole pictures, RGB, files in memory, no resize"; }

private:
    void work() override {
        pixels_.resize(workload_.num_workers);
        for_all(order_.size(), pixels_.size(), [this](std::size_t i, std::size_t thread) {
            decode_whole(files_[order_[i]], [&pixels = pixels_[thread]](std::size_t height, std::size_t width) {
                pixels.resize(3 * width * height);
                return pixels.data();
            });
        });
    }
    std::vector<std::vector<std::byte>> files_;
    std::vector<std::vector<unsigned char>> pixels_;   // per thread
};

class MemcpyBound final : public Bound {
public:
    explicit MemcpyBound(const Workload& workload)
        : Bound{workload}, rows_{workload}, ring_(3, std::vector<float>(workload.batch_size * workload.values())) {}
    std::string describe() const override { return "one thread, a ring of 3 batches"; }

private:
    void work() override {
        const std::size_t values = workload_.values();
        for (std::size_t i = 0; i < order_.size(); ++i) {
            std::vector<float>& batch = ring_[i / workload_.batch_size % ring_.size()];
            std::memcpy(batch.data() + i % workload_.batch_size * values, rows_.row(order_[i]), values * sizeof(float));
        }
    }
    RowsFile rows_;
    std::vector<std::vector<float>> ring_;
};

/// Takes the time of the items, spread evenly over the threads: the rate is threads / mean time of an item.
class ThreadsBound final : public Bound {
public:
    explicit ThreadsBound(const Workload& workload) : Bound{workload}, item_ns_(workload.num_workers) {}
    std::string describe() const override { return "as many threads as workers, no batches; threads / mean item time"; }

    Times take_times() override {
        const std::int64_t sum = std::accumulate(item_ns_.begin(), item_ns_.end(), std::int64_t{0});
        std::ranges::fill(item_ns_, 0);
        return {.wall_ns = sum / static_cast<std::int64_t>(item_ns_.size())};
    }

private:
    void work() override {
        using Clock = std::chrono::steady_clock;
        for_all(order_.size(), item_ns_.size(), [this](std::size_t i, std::size_t thread) {
            const auto begin = Clock::now();
            make_straggler(order_[i]);
            item_ns_[thread] += std::chrono::nanoseconds{Clock::now() - begin}.count();
        });
    }
    std::vector<std::int64_t> item_ns_;   // per thread
};

}   // namespace

std::unique_ptr<Loader> make_decode_bound(const Workload& workload) { return std::make_unique<DecodeBound>(workload); }
std::unique_ptr<Loader> make_memcpy_bound(const Workload& workload) { return std::make_unique<MemcpyBound>(workload); }
std::unique_ptr<Loader> make_threads_bound(const Workload& workload) {
    return std::make_unique<ThreadsBound>(workload);
}

}   // namespace drawpoint::bench
