#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/diagnosis/demands/recorded_run.hpp>
#include <drawpoint/diagnosis/verdict/words.hpp>

namespace drawpoint::bench {

/// What a rule says: a verdict, and a setting where it has one to offer.
struct RuleAnswer {
    Verdict verdict{};
    std::optional<LoaderSetting> advice;
};

/// What rules know of a run: means over the steps after warm-up, in microseconds.
struct RunFigures {
    LoaderSetting setting;
    std::vector<std::string> stages;
    std::vector<double> stage_us, stage_cpu_us;   ///< of a sample; without a measured CPU time they are the same
    double read_us = 0;                           ///< of a read ahead of the workers; 0: there are none
    double collate_us = 0, transfer_us = 0;       ///< of a batch
    double draw_us = 0, compute_us = 0;           ///< of a step, and the rest of it
    double empty_share = 0;                       ///< draws that found no batch
    double reads_ready_share = 1;                 ///< samples whose read was over when a worker took them up
    double cpu_us = 0;                            ///< of a step, of all threads; 0: unknown
    double cores = 1;

    [[nodiscard]] double draw_share() const noexcept {
        return draw_us + compute_us > 0 ? draw_us / (draw_us + compute_us) : 0;
    }
};

/// Of a sorted ledger's first pipeline, from step `first_step` on.
[[nodiscard]] RunFigures figures_of(const Ledger&, std::size_t first_step, double cores);

/// A rule that other tools go by, put into this loader's terms (README.md says how).
struct Rule {
    std::string_view name;
    RuleAnswer (*answer)(const RunFigures&);
};
[[nodiscard]] std::span<const Rule> rules() noexcept;

/// What a step takes by the rule of one line: the longest of the loop, the loader shared by its workers, all
/// computing shared by the cores, and reading. `setting`: instead of the recorded one.
[[nodiscard]] double one_line_step_us(const RunFigures&, const LoaderSetting& setting) noexcept;
[[nodiscard]] double one_line_step_us(const RunFigures&) noexcept;

/// tf.data's model of a buffer of `depth` elements between a producer and a consumer that take the given times per
/// element: the share of the consumer's draws that find the buffer empty.
[[nodiscard]] double share_empty(double producer_us, double consumer_us, std::size_t depth) noexcept;

}   // namespace drawpoint::bench
