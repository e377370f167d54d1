#pragma once

#include <sys/types.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace drawpoint::bench {

/// One round as a contender saw it: some passes, one after the other.
struct Round {
    std::int64_t wall_ns = 0, cpu_ns = 0;
    std::int64_t first_batch_ns = 0;         ///< from asking for the first pass to its first batch in hand
    std::int64_t fresh_first_batch_ns = 0;   ///< the same for a loader made for it, its making included; 0: not asked
    std::int64_t bound_ns = 0;               ///< the shortest time these passes could have taken; 0: unknown
    std::uint64_t items = 0, batches = 0, minor_faults = 0;
    [[nodiscard]] double items_per_s() const { return static_cast<double>(items) * 1e9 / static_cast<double>(wall_ns); }
};

/// One batch, copied. No data from a bound.
struct BatchCopy {
    std::vector<float> data;
    std::vector<std::int64_t> targets;
};

/// A contender that says it cannot run, ended, or did not answer. what() is the reason.
struct NotRun : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A contender in a process of its own, so that its heap, its malloc settings and its threads touch no other's. Idle between
/// calls. It is told its work as JSON in its last argument and answers each line of JSON on stdin with one on stdout:
/// at first {"settings"} or {"not_run"}; to {"do":"round","epoch","passes"}: {"wall_ns","first_batch_ns","items","batches",
/// "bound_ns"}; to {"do":"first_batch","epoch"}: {"wall_ns"}; to {"do":"batches","epoch","batches":[…]}: for each
/// {"targets","values"} and as many float32. One thread at a time. The constructor and all
/// questions throw NotRun.
class Child {
public:
    /// `command`: the program and its arguments but the last.
    Child(std::vector<std::string> command, const nlohmann::json& work);
    ~Child();
    Child(Child&&) noexcept;
    Child& operator=(Child&&) = delete;

    [[nodiscard]] const std::string& settings() const noexcept { return settings_; }
    [[nodiscard]] Round round(std::size_t first_epoch, std::size_t passes);
    [[nodiscard]] std::int64_t first_batch_ns(std::size_t epoch);
    /// Ascending numbers of batches of one pass.
    [[nodiscard]] std::vector<BatchCopy> batches(std::size_t epoch, const std::vector<std::size_t>& numbers);

private:
    nlohmann::json ask(const nlohmann::json& request);
    nlohmann::json read_line();
    void read_some();
    void stop() noexcept;

    std::string settings_;
    pid_t pid_ = -1;
    int to_ = -1, from_ = -1;
    std::string buffer_;   // read and not yet used
};

}   // namespace drawpoint::bench
