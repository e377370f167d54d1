#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <drawpoint/bench/experiment/contender.hpp>

namespace drawpoint::bench {

/// What a contender measured in one turn: some passes, one after the other.
struct Passes {
    std::int64_t wall_ns = 0, cpu_ns = 0;
    std::int64_t first_batch_ns = 0;   ///< from starting the first pass to its first batch
    /// the same for a newly made loader, construction included; 0: not measured
    std::int64_t fresh_first_batch_ns = 0;
    std::int64_t bound_ns = 0;   ///< the shortest time these passes could have taken; 0: unknown
    std::uint64_t items = 0, batches = 0, minor_faults = 0;
    [[nodiscard]] double items_per_s() const { return static_cast<double>(items) * 1e9 / static_cast<double>(wall_ns); }
};

/// A copy of one batch. Empty data for a bound.
struct BatchCopy {
    std::vector<float> data;
    std::vector<std::int64_t> targets;
};

/// A contender in a process of its own, so that heap, malloc settings and threads of contenders do not affect one
/// another. It is idle between calls. Its last argument is its work as JSON. It answers each line of JSON on stdin with
/// one on stdout:
///   at first:                                     {"settings"} or {"not_run"}
///   {"do":"round","epoch","passes"}:              {"wall_ns","first_batch_ns","items","batches","bound_ns"}
///   {"do":"first_batch","epoch"}:                 {"wall_ns"}
///   {"do":"batches","epoch","batches":[…]}:       for each {"targets","values"}, then as many float32
/// or {"error"}: why it cannot. Not thread-safe. The constructor and all questions throw NotRun, whose what() is the
/// reason alone, and nlohmann::json::exception if an answer lacks something.
class Child {
public:
    /// `command`: the program and its arguments, without the last one.
    Child(std::vector<std::string> command, const nlohmann::json& work);
    ~Child();
    Child(Child&&) noexcept;
    Child& operator=(Child&&) = delete;

    [[nodiscard]] const std::string& settings() const noexcept { return settings_; }
    [[nodiscard]] Passes passes(std::size_t first_epoch, std::size_t passes);
    /// CPU time so far of the process and its descendants.
    [[nodiscard]] double cpu_seconds() const;
    [[nodiscard]] std::int64_t first_batch_ns(std::size_t epoch);
    /// `numbers`: batches of one pass, ascending.
    [[nodiscard]] std::vector<BatchCopy> batches(std::size_t epoch, const std::vector<std::size_t>& numbers);

private:
    nlohmann::json ask(const nlohmann::json& request);
    nlohmann::json read_line();
    void read_some();
    void stop() noexcept;

    std::string settings_;
    pid_t pid_ = -1;
    int to_ = -1, from_ = -1;
    std::string buffer_;   // bytes read but not used yet
};

}   // namespace drawpoint::bench
