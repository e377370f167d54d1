#include <drawpoint/pipeline/loader/core/loader_options.hpp>

#include <chrono>
#include <stdexcept>
#include <string>
#include <utility>

namespace drawpoint {
namespace {

constexpr std::chrono::hours longest_time{24};

void refuse(std::string complaint) {
    if (!complaint.empty())
        throw std::invalid_argument{std::move(complaint)};
}

void check_time(std::string_view name, std::chrono::nanoseconds time) {
    if (time.count() < 0)
        refuse(std::string{name} + " must be at least 0, got " + std::to_string(time.count()) + " ns");
    if (time > longest_time)
        refuse(std::string{name} + " must be at most 24 h, got " + std::to_string(time.count()) + " ns");
}

}   // namespace

LoaderOptions options_of(const LoaderSetting& setting) noexcept {
    return {.batch_size = setting.batch_size,
            .num_workers = setting.num_workers,
            .prefetch_depth = setting.prefetch_depth,
            .order = setting.order,
            .read_concurrency = setting.read_concurrency,
            .memory_budget = setting.memory_budget};
}

void check_options(const LoaderOptions& options, std::size_t max_threads) {
    refuse(out_of_range(options.setting()));
    if (max_threads != 0 && options.num_workers > max_threads)
        refuse("num_workers must be at most max_threads = " + std::to_string(max_threads) + ", got " +
               std::to_string(options.num_workers));
    check_time("read_deadline", options.read_deadline);
    check_time("stall_timeout", options.stall_timeout);
    if (options.on_error > OnError::substitute)
        refuse("on_error must be raise, skip or substitute, got " +
               std::to_string(static_cast<unsigned>(options.on_error)));
    refuse(out_of_range("read_retries", options.read_retries, 0, loader_limits::most_read_retries));
}

}   // namespace drawpoint
