#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace drawpoint::bench {

/// What every contender does in one pass: reads each JPEG of a class folder, cuts a RandomResizedCrop to side × side with an
/// antialiased bilinear filter, mirrors half of them, normalises with ImageNet's means, and hands over batches in the order of
/// `RandomSampler{n, seed}`. Crop boxes and flips are drawn from `CounterRng{seed, epoch, index}`, so all see the same pixels.
struct Workload {
    std::filesystem::path data;
    std::size_t batch_size = 64, num_workers = 2;
    std::uint32_t side = 224;
    std::uint64_t seed = 7;
};

/// One batch in hand, planar float32 [targets.size(), 3, side, side]; valid until the callback it was given to returns.
struct BatchView {
    const float* data = nullptr;
    std::span<const std::int64_t> targets;
};

/// A loader under measurement, its workers started. One thread at a time.
class Contender {
public:
    virtual ~Contender() = default;
    /// One pass, in order. `more` says that the next epoch follows at once.
    virtual void pass(std::size_t epoch, bool more, const std::function<void(const BatchView&)>& see) = 0;
    /// Settings and library versions, one line.
    [[nodiscard]] virtual std::string describe() const = 0;
};

/// drawpoint's own DataLoader, recording as it does by default.
[[nodiscard]] std::unique_ptr<Contender> make_drawpoint(const Workload&);

enum class TorchKernel { aten, drawpoint };   ///< what makes a sample inside the dataset's get()

/// LibTorch's `torch::data` loader with its default settings, Stack, and a dataset as a user of LibTorch would write it.
[[nodiscard]] std::unique_ptr<Contender> make_torch_data(const Workload&, TorchKernel);

}   // namespace drawpoint::bench
