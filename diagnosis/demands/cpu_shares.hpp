#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include <drawpoint/diagnosis/demands/recorded_run.hpp>

namespace drawpoint {

/// Pieces of work of which all was measured. What one that was not measured computed, and how long it waited for a core, is
/// told from the one of these that took most nearly as long.
class Likes {
public:
    struct Like {
        std::int64_t wall_ns = 0;
        double cpu_ns = 0, queueing = 0;   // of the rest, its share; below 0: there is no rest to tell it from
    };
    void add(std::int64_t wall_ns, double cpu_ns, double run_queue_ns);
    void sort();                                                              // after the last add
    [[nodiscard]] const Like* nearest(std::int64_t wall_ns) const noexcept;   // null: there are too few to tell

private:
    std::vector<Like> likes_;   // the shortest first
};

/// How much of their time a loader's samples computed, waited for a core, or waited otherwise: of those where it was
/// measured, and by these of the others: by the one that took most nearly as long, as one that waited for a core is
/// long and computed no more than others. Samples far beyond the median are a class of their own: what makes them long
/// is something else. In which stages a sample waits, those say that hardly queued: a core may be lost in any.
class CpuShares {
public:
    CpuShares(const Ledger&, std::uint8_t pipeline);

    [[nodiscard]] bool measured() const noexcept { return measured_; }   ///< anywhere
    /// A row's stages as demands: of at least one sample, at most `max_stages` stages. The wait for a core is left out: a
    /// replay makes its own.
    void split(const SampleRow&, std::span<const StageRow>, std::span<Demand> stages) const;
    /// A row's read ahead of the worker as a demand, the wait for a core left out.
    [[nodiscard]] Demand read_of(const SampleRow&) const noexcept;
    /// Of `ns` that a worker computed without being measured.
    [[nodiscard]] std::int64_t without_run_queue(std::int64_t ns) const noexcept;

private:
    struct Class {
        std::array<double, max_stages> wall{}, cpu{};   // of stages that were measured
        double samples_wall = 0, samples_cpu = 0;       // of samples that were
        double queued_wall = 0, queued_off = 0,
               run_queue = 0;   // of samples whose wait for a core was; off: not computing
        [[nodiscard]] double share(std::size_t stage) const noexcept;   ///< computing; below 0: not known
        [[nodiscard]] double queue_share() const noexcept { return queued_wall > 0 ? run_queue / queued_wall : 0; }
    };
    [[nodiscard]] const Class& class_of(std::int64_t wall_ns) const noexcept;
    /// `waiting_ns` of all stages, by stage; `off_ns`: the most that each can have waited, becomes what it did.
    void place_waiting(double waiting_ns, std::span<double> off_ns) const noexcept;

    Likes samples_, reads_;
    std::array<double, max_stages> waits_{};   // of samples that hardly queued
    std::int64_t long_from_ns_;
    Class usual_, long_;
    bool measured_ = false;
};

}   // namespace drawpoint
