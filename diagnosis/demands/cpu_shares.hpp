#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <drawpoint/diagnosis/demands/recorded_run.hpp>

namespace drawpoint {

/// Pieces of work that were measured. A piece that was not is assumed to have computed, and waited for a core, as the
/// measured one with the most similar duration did.
class Likes {
public:
    struct Like {
        std::int64_t wall_ns = 0;
        // queueing: part of the time off the core that was waiting for it; below 0: it was never off the core
        double cpu_ns = 0, queueing = 0;
    };
    void add(std::int64_t wall_ns, double cpu_ns, double run_queue_ns);
    void sort();                                                              // after the last add
    [[nodiscard]] const Like* nearest(std::int64_t wall_ns) const noexcept;   // null: there are too few

private:
    std::vector<Like> likes_;   // shortest first
};

/// How much of their time a loader's samples computed, waited for a core, or waited for something else. Where it was
/// not measured, the measured sample of the most similar duration stands in: a sample that waited for a core is longer
/// and computed no more than others. Samples far above the median are a class of their own, because something else
/// makes them long. In which stages a sample waits is taken from samples that hardly waited for a core: a core may be
/// lost in any stage.
class CpuShares {
public:
    CpuShares(const Ledger&, std::uint16_t pipeline);

    [[nodiscard]] bool measured() const noexcept { return measured_; }   ///< for any sample
    /// A row's stages as demands. The row has at least one sample and at most `max_stages` stages. Waiting for a core
    /// is left out: a replay simulates its own.
    void split(const SampleRow&, std::span<const StageRow>, std::span<Demand> stages) const;
    /// Core time between a row's begin and its last stage's end that is in none of its stages.
    [[nodiscard]] std::int64_t unstamped_ns(const SampleRow&, std::span<const StageRow>) const noexcept;
    /// A row's read ahead of the worker as a demand, without waiting for a core.
    [[nodiscard]] Demand read_of(const SampleRow&) const noexcept;
    /// `ns` of a worker's unmeasured time, without the part that is usually spent waiting for a core.
    [[nodiscard]] std::int64_t without_run_queue(std::int64_t ns) const noexcept;
    /// How much longer than it computes a worker takes because it waits for a core, ≥ 1.
    [[nodiscard]] double slowdown() const noexcept;

private:
    struct Class {
        std::array<double, max_stages> wall{}, cpu{};   // sums over stages that were measured
        double samples_wall = 0, samples_cpu = 0;       // sums over samples that were measured
        double queued_wall = 0, queued_off = 0,
               run_queue = 0;   // of samples whose wait for a core was measured; off: not computing
        [[nodiscard]] double share(std::size_t stage) const noexcept;   ///< of computing; below 0: not known
        [[nodiscard]] double queue_share() const noexcept { return queued_wall > 0 ? run_queue / queued_wall : 0; }
    };
    /// Of a row whose CPU time was measured: what its stages computed.
    [[nodiscard]] double cpu_of_stages(const SampleRow&, std::span<const StageRow>) const noexcept;
    [[nodiscard]] const Class& class_of(std::int64_t wall_ns) const noexcept;
    /// Distributes `waiting_ns` over the stages. `off_ns`: how long each stage may have waited at most; becomes how
    /// long it did.
    void place_waiting(double waiting_ns, std::span<double> off_ns) const noexcept;

    Likes samples_, reads_;
    std::array<double, max_stages> waits_{};              // of samples that hardly waited for a core
    std::int64_t long_from_ns_, most_unstamped_ns_ = 0;   // of a sample: in more, the worker was preempted
    Class usual_, long_;
    bool measured_ = false;
};

}   // namespace drawpoint
