#include <drawpoint/diagnosis/demands/scheduler_times.hpp>

#include <algorithm>
#include <bit>
#include <string_view>

#include <drawpoint/instrumentation/facts.hpp>

#include <drawpoint/diagnosis/demands/detail/number_fact.hpp>

namespace drawpoint {
namespace {

constexpr double least_tick_ns = 1e5, most_tick_ns = 1e8;   // 10 kHz to 10 Hz

}   // namespace

SchedulerTimes scheduler_times(const Ledger& ledger) {
    constexpr double most_ns = 1e9, most_cores = 1e6;
    constexpr std::int64_t slice_of_one_core_ns = 700'000, most_scaling_cores = 8;
    SchedulerTimes times;
    const auto told = [&](std::int64_t& ns, std::string_view key, double least, double most, std::string_view name) {
        if (const auto number = number_fact(ledger, key, most); number && *number >= least) {
            ns = static_cast<std::int64_t>(*number);
            return;
        }
        times.assumed += times.assumed.empty() ? "" : ", ";
        times.assumed += name;
    };
    const double cores = number_fact(ledger, facts::host_online_cores, most_cores).value_or(2);
    const auto scaling = std::clamp<std::int64_t>(static_cast<std::int64_t>(cores), 1, most_scaling_cores);
    times.base_slice_ns = slice_of_one_core_ns * std::bit_width(static_cast<std::uint64_t>(scaling));
    told(times.tick_ns, facts::host_tick_ns, least_tick_ns, most_tick_ns, "tick");
    told(times.base_slice_ns, facts::host_base_slice_ns, 1, most_ns, "base slice");
    told(times.migration_cost_ns, facts::host_migration_cost_ns, 1, most_ns, "migration cost");
    return times;
}

}   // namespace drawpoint
