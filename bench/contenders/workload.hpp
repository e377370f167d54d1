#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace drawpoint::bench {

/// What every contender does in one pass, and with which settings.
///
/// jpeg, latency: reads each JPEG of a class folder, cuts a RandomResizedCrop to side × side, mirrors half of them,
/// normalises with ImageNet's means: float32 [n, 3, side, side]. Crop boxes and flips are drawn from `CounterRng{seed,
/// epoch, index}`.
/// tiny: rows of 4 floats; tensor: rows of 3 × side × side floats; both copied from the plan's file.
/// straggler: items that sleep 0.2 ms, one in 100 of them 20 ms, and consist of 4 floats computed from their index.
/// consumer: only drawpoint; items that compute, and a loop that computes or waits.
/// Batches come in the order of `RandomSampler{items, seed}`; those of tiny in ascending order.
struct Workload {
    std::string kind = "jpeg", contender = "drawpoint", variant = "as_shipped";
    std::filesystem::path data;   ///< folder of class folders
    std::filesystem::path plan;   ///< the folder that write_plan() filled
    std::size_t items = 0;        ///< per pass, a whole number of batches
    std::size_t batch_size = 64, num_workers = 2;
    std::size_t prefetch_depth = 0;   ///< 0: each contender's choice
    std::uint32_t side = 224;
    std::uint64_t seed = 7;
    std::string jpeg_decoder = "auto", resize_filter = "antialias", order = "in";
    std::int64_t compute_ns = 0, item_ns = 0;   ///< consumer: time of a step of the loop; time to make an item

    /// Whether pictures are decoded by drawpoint's kernel, and thus by `jpeg_decoder`.
    [[nodiscard]] bool has_our_kernel() const {
        return reads_photos() && (contender == "drawpoint" || variant.starts_with("same_kernel"));
    }
    [[nodiscard]] bool reads_photos() const { return kind == "jpeg" || kind == "latency"; }
    [[nodiscard]] std::size_t values() const {   ///< of a sample
        return reads_photos() || kind == "tensor" ? std::size_t{3} * side * side : 4;
    }
    [[nodiscard]] std::size_t batches() const { return (items + batch_size - 1) / batch_size; }
};

void to_json(nlohmann::json&, const Workload&);
void from_json(const nlohmann::json&, Workload&);

}   // namespace drawpoint::bench
