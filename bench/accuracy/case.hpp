#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/diagnosis/demands/recorded_run.hpp>

namespace drawpoint::bench {

/// How a demand varies from sample to sample. The factor depends on (seed, index) alone, so it is the same in every
/// run.
struct Variation {
    double sigma = 0;                         ///< of a lognormal factor with mean 1
    double rare_share = 0, rare_factor = 1;   ///< this share of the samples takes `rare_factor` times as long
    double spread = 1;                        ///< scales how far each factor lies from their mean
    bool operator==(const Variation&) const = default;
};

/// One stage of a sample.
struct CaseStage {
    std::string name;
    double work_us = 0;   ///< core time on an undisturbed core, decoding included
    double wait_us = 0;   ///< sleep
    Variation variation;
    /// the factor is the sample's size, shared with the read and the other stages that have `by_size`
    bool by_size = false;
    /// How often a real JPEG file is decoded, cropped and normalized; 0 or even. The stage burns the rest of `work_us`,
    /// so it takes the same time on every host, unless decoding alone takes longer.
    std::size_t jpeg_decodes = 0;
    bool operator==(const CaseStage&) const = default;
};

/// What precedes the stages: a stage `read`, or reads ahead by other threads if `LoaderSetting::read_concurrency` is
/// set.
struct CaseRead {
    double latency_us = 0;
    Variation variation;
    bool by_size = false;
    double bytes = 0;             ///< per sample, before its factor
    double megabytes_per_s = 0;   ///< bandwidth that all reads share; 0: unlimited
    [[nodiscard]] bool any() const noexcept { return latency_us > 0 || megabytes_per_s > 0; }
    /// Transfer time of a sample of mean size.
    [[nodiscard]] double line_us() const noexcept { return megabytes_per_s > 0 ? bytes / megabytes_per_s : 0; }
    bool operator==(const CaseRead&) const = default;
};

/// What the loop does with each batch.
struct CaseConsumer {
    double wait_us = 0, work_us = 0;
    double jitter = 0;   ///< both times vary by a factor of 1 - jitter … 1 + jitter
    /// this many steps take `burst_factor` times as long, then as many are shorter, so that the mean stays; 0: none
    std::size_t burst_length = 0;
    double burst_factor = 1;
    std::size_t threads = 1;   ///< that share the work, and wait for one another by spinning
    bool operator==(const CaseConsumer&) const = default;
};

/// What makes a run unfit for a verdict.
enum class Disturbance : std::uint8_t { none, external_load, speed_up, drift, clock_step, lost_records };

/// One pipeline to be diagnosed. A value type: a changed case is another pipeline.
struct Case {
    std::string name;                        ///< of its file; rules do not see it
    std::string about;                       ///< a description for people
    std::string kind;                        ///< "single", "compound", "control", "adversarial"
    std::string injected, severity, noise;   ///< what the author intended; what is right is measured
    LoaderSetting setting;
    std::size_t steps = 100;
    std::uint64_t sample_bytes = 256;   ///< of a finished sample, unless it is a picture
    CaseRead read;
    std::vector<CaseStage> stages;
    double collate_us = 0;    ///< core time per batch; 0: nothing is collated
    double transfer_us = 0;   ///< sleep of the loop after each draw
    CaseConsumer consumer;
    Disturbance disturbance = Disturbance::none;
    double disturbance_size = 0;                          ///< number of processes, factor, share or ms: see README.md
    double disturbance_from = 0, disturbance_to = 1;      ///< positions in the run, 0 … 1
    std::vector<std::size_t> grid_workers, grid_depths;   ///< all pairs are measured; empty: none
    std::uint64_t digest = 0;                             ///< of the file; a truth belongs to one digest
    /// Which samples and steps are drawn from its variations: others have the same distribution. Not in the file.
    std::uint32_t sample_set = 0;

    [[nodiscard]] bool jpeg() const noexcept;
    bool operator==(const Case&) const = default;
};

/// Parses the format that README.md describes. Throws std::invalid_argument naming `name`, the field and what is wrong
/// with it; unknown fields are errors, too.
[[nodiscard]] Case parse_case(std::string_view json, std::string name);

/// Reads every *.json of a folder, sorted by name. Throws like parse_case, and if the folder has none.
[[nodiscard]] std::vector<Case> read_cases(const std::filesystem::path& folder);

/// Reads a whole file. Throws std::runtime_error naming it.
[[nodiscard]] std::string read_text(const std::filesystem::path&);
/// Writes a file that is whole or not there. Throws std::runtime_error naming it.
void write_text(const std::filesystem::path&, std::string_view);

/// Factors of the samples 0 … count - 1 in one stage, not normalised. `place` identifies the stage; 0 for those with
/// `by_size`.
[[nodiscard]] std::vector<double> factors_of(const Variation&, std::size_t place, std::size_t count,
                                             std::uint32_t sample_set = 0);
/// The factor of a step from bursts and jitter.
[[nodiscard]] double step_factor(const CaseConsumer&, std::size_t step, std::uint32_t sample_set = 0) noexcept;

}   // namespace drawpoint::bench
