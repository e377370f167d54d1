#include <drawpoint/diagnosis/trust/interference.hpp>

#include <algorithm>
#include <cmath>
#include <string_view>

#include <drawpoint/diagnosis/demands/detail/number_fact.hpp>
#include "diagnosis/trust/host_pieces.hpp"
#include <drawpoint/instrumentation/facts.hpp>

namespace drawpoint {
namespace {

constexpr double most_cores = 1e9;

using LoadPiece = HostPiece<3>;   // busy, own, children

double ticks_in(const auto& piece) { return (piece.to_ns - piece.from_ns) / accounting_tick_ns; }

/// The variance of a piece's load that is due to the kernel's ticks alone: each finds a core busy or not, and the time
/// between the last tick and the row is not counted.
double tick_variance(const LoadPiece& piece, double affinity) {
    const double ticks = ticks_in(piece), busy = std::min(piece.rates[0] / affinity, 1.0);
    return affinity * (busy * (1 - busy) / ticks + 1 / (6 * ticks * ticks));
}

/// The cores of the process's affinity mask, at least `cores`: host rows count on these.
double affinity_of(const Ledger& ledger, double cores) {
    return std::max(cores, number_fact(ledger, facts::host_affinity_cores, most_cores).value_or(cores));
}

void measure_load(Interference& found, const Ledger& ledger, std::int64_t from_ns, std::int64_t to_ns) {
    constexpr HostColumns<3> columns{&HostRow::busy_ns, &HostRow::own_cpu_ns, &HostRow::children_cpu_ns};
    const auto pieces = host_pieces(ledger, from_ns, to_ns, columns);
    // If the quota is smaller than the affinity mask, others may use the remaining cores without taking anything.
    const double affinity = affinity_of(ledger, found.cores), spare = affinity - found.cores;
    const auto taken = [&](const LoadPiece& piece) {
        const double foreign = piece.rates[0] - piece.rates[1] - piece.rates[2] - spare;
        return spare > 0 ? std::max(foreign, 0.0) : foreign;
    };
    double covered_ns = 0;
    for (const LoadPiece& piece : pieces)
        covered_ns += piece.ns;
    found.measured = covered_ns > 0 && covered_ns >= (static_cast<double>(to_ns) - static_cast<double>(from_ns)) / 2;
    if (pieces.empty()) {
        constexpr HostColumns<2> own{&HostRow::own_cpu_ns, &HostRow::children_cpu_ns};
        found.own_cores =
            mean_rate(host_pieces(ledger, from_ns, to_ns, own), [](const auto& p) { return p.rates[0] + p.rates[1]; });
        return;
    }
    found.own_cores = mean_rate(pieces, [](const LoadPiece& piece) { return piece.rates[1] + piece.rates[2]; });
    const double mean = mean_rate(pieces, taken);
    found.foreign_cores = std::clamp(mean, 0.0, found.cores);
    const double variance = mean_rate(pieces, [&](const LoadPiece& piece) {
        const double off = taken(piece) - mean;
        return off * off - tick_variance(piece, affinity);
    });
    found.foreign_cores_spread = std::sqrt(std::max(variance, 0.0));
}

/// The kernel adds up exactly what a hypervisor takes from a core, and tells it in whole ticks.
void measure_steal(Interference& found, const Ledger& ledger, std::int64_t from_ns, std::int64_t to_ns) {
    const auto pieces = host_pieces<1>(ledger, from_ns, to_ns, {&HostRow::steal_ns});
    if (pieces.empty())
        return;
    const double affinity = affinity_of(ledger, found.cores),
                 mean = mean_rate(pieces, [](const auto& piece) { return piece.rates[0]; });
    found.steal_cores = std::min(mean, found.cores);
    const double variance = mean_rate(pieces, [&](const auto& piece) {
        const double off = piece.rates[0] - mean, ticks = ticks_in(piece);
        return off * off - affinity / (6 * ticks * ticks);
    });
    found.steal_cores_spread = std::sqrt(std::max(variance, 0.0));
}

double run_queue_share(const Ledger& ledger, std::int64_t from_ns, std::int64_t to_ns) {
    double waited_ns = 0, ns = 0;
    for (const SampleRow& sample : ledger.samples) {
        const auto stages = ledger.stages_of(sample);
        if (!sample.run_queue_ns || *sample.run_queue_ns < 0 || sample.begin_ns < from_ns || sample.begin_ns >= to_ns ||
            stages.empty())
            continue;
        const double took = static_cast<double>(stages.back().begin_ns) + static_cast<double>(stages.back().ns) -
                            static_cast<double>(sample.begin_ns);
        if (took <= 0)
            continue;
        waited_ns += std::min(static_cast<double>(*sample.run_queue_ns), took);
        ns += took;
    }
    return ns > 0 ? waited_ns / ns : 0;
}

std::optional<std::uint64_t> resident_peak(const Ledger& ledger, std::int64_t from_ns, std::int64_t to_ns) {
    std::optional<std::uint64_t> peak;
    for (const HostRow& row : ledger.host) {
        if (row.resident_bytes < 0 || row.at_ns > to_ns)
            continue;
        const auto bytes = static_cast<std::uint64_t>(row.resident_bytes);
        // the last value before the range counts
        peak = row.at_ns < from_ns ? bytes : std::max(peak.value_or(0), bytes);
    }
    return peak;
}

}   // namespace

Interference interference(const Ledger& ledger, std::int64_t from_ns, std::int64_t to_ns) {
    Interference found;
    const auto cores = number_fact(ledger, facts::host_cores, most_cores);
    found.cores = cores ? *cores : number_fact(ledger, facts::machine_cores, most_cores).value_or(1);
    measure_load(found, ledger, from_ns, to_ns);
    measure_steal(found, ledger, from_ns, to_ns);

    const auto rate = [&](std::int64_t HostRow::* column) -> std::optional<double> {
        const auto pieces = host_pieces<1>(ledger, from_ns, to_ns, {column});
        return pieces.empty() ? std::nullopt
                              : std::optional{mean_rate(pieces, [](const auto& piece) { return piece.rates[0]; })};
    };
    const auto share = [&](std::int64_t HostRow::* column) {
        const auto found_rate = rate(column);
        return found_rate ? std::optional{std::min(*found_rate, 1.0)} : std::nullopt;
    };
    const auto per_s = [&](std::int64_t HostRow::* column) {
        const auto found_rate = rate(column);
        return found_rate ? std::optional{*found_rate * 1e9} : std::nullopt;
    };
    found.throttled_share = share(&HostRow::throttled_ns).value_or(0);
    found.cpu_pressure = share(&HostRow::cpu_pressure_ns);
    found.io_pressure = share(&HostRow::io_pressure_ns);
    found.memory_pressure = share(&HostRow::memory_pressure_ns);
    found.major_faults_per_s = per_s(&HostRow::major_faults);
    found.involuntary_switches_per_s = per_s(&HostRow::involuntary_switches);
    found.run_queue_share = run_queue_share(ledger, from_ns, to_ns);
    found.resident_peak_bytes = resident_peak(ledger, from_ns, to_ns);
    return found;
}

}   // namespace drawpoint
