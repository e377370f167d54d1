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

/// By which factor a demand differs from sample to sample; keyed by (seed, index), so a sample is the same in every run.
struct Variation {
    double sigma = 0;                         ///< of a lognormal factor with mean 1
    double rare_share = 0, rare_factor = 1;   ///< so many samples take so many times as long
    bool constant = false;                    ///< every sample takes the mean of those drawn
    bool operator==(const Variation&) const = default;
};

/// One stage of a sample.
struct CaseStage {
    std::string name;
    double work_us = 0;   ///< of a core that nothing disturbs; what decoding takes is part of it
    double wait_us = 0;   ///< asleep
    Variation variation;
    bool by_size = false;   ///< the factor is the sample's size: the same in all stages that say so, and in the read
    /// Times that a real JPEG file is decoded, cropped and normalized; 0 or even. The rest of `work_us` is burnt, so that the
    /// stage takes as long as it says on any day, unless decoding alone takes longer.
    std::size_t jpeg_decodes = 0;
    bool operator==(const CaseStage&) const = default;
};

/// What comes before the stages: a stage `read`, or reads ahead of the workers where `LoaderSetting::read_concurrency` says so.
struct CaseRead {
    double latency_us = 0;
    Variation variation;
    bool by_size = false;
    double bytes = 0;             ///< a sample's, times its factor
    double megabytes_per_s = 0;   ///< of one line that all reads share; 0: no such limit
    [[nodiscard]] bool any() const noexcept { return latency_us > 0 || megabytes_per_s > 0; }
    /// Of the line, by a sample of the mean size.
    [[nodiscard]] double line_us() const noexcept { return megabytes_per_s > 0 ? bytes / megabytes_per_s : 0; }
    bool operator==(const CaseRead&) const = default;
};

/// What the loop does with a batch.
struct CaseConsumer {
    double wait_us = 0, work_us = 0;
    double jitter = 0;   ///< of both: a factor of 1 - jitter … 1 + jitter
    std::size_t burst_length =
        0;   ///< that many steps `burst_factor` times as long, as many scaled so that the mean stays; 0: none
    double burst_factor = 1;
    std::size_t threads = 1;   ///< the work is shared by so many, who wait for one another spinning
    bool operator==(const CaseConsumer&) const = default;
};

/// What makes a run unfit for a verdict, or nothing.
enum class Disturbance : std::uint8_t { none, external_load, speed_up, drift, clock_step, lost_records };

/// One pipeline to be diagnosed. A value; a changed case is another pipeline.
struct Case {
    std::string name;                        ///< of its file; means nothing
    std::string about;                       ///< for people
    std::string kind;                        ///< "single", "compound", "control", "adversarial"
    std::string injected, severity, noise;   ///< as it was made up; what is right is what was measured
    LoaderSetting setting;
    std::size_t steps = 100;
    std::uint64_t sample_bytes = 256;   ///< of a finished one that is not a picture
    CaseRead read;
    std::vector<CaseStage> stages;
    double collate_us = 0;    ///< of a core; 0: nothing is collated
    double transfer_us = 0;   ///< asleep, in the loop, after each draw
    CaseConsumer consumer;
    Disturbance disturbance = Disturbance::none;
    double disturbance_size = 0;                          ///< processes, factor, share or ms: README.md
    double disturbance_from = 0, disturbance_to = 1;      ///< of the run, 0 … 1
    std::vector<std::size_t> grid_workers, grid_depths;   ///< settings measured one by one; empty: none
    std::uint64_t digest = 0;                             ///< of the file: a truth belongs to one

    [[nodiscard]] bool jpeg() const noexcept;
    bool operator==(const Case&) const = default;
};

/// Reads what README.md describes. Throws std::invalid_argument naming `name`, the field and what is wrong with it, also of a
/// field that there is not.
[[nodiscard]] Case parse_case(std::string_view json, std::string name);

/// Every *.json of a folder, by name. Throws as above, and naming a folder without any.
[[nodiscard]] std::vector<Case> read_cases(const std::filesystem::path& folder);

/// The whole file. Throws std::runtime_error naming it.
[[nodiscard]] std::string read_text(const std::filesystem::path&);

/// Factors of samples 0 … count - 1 in one stage (`place`; 0 for all that go by size), mean as drawn.
[[nodiscard]] std::vector<double> factors_of(const Variation&, std::size_t place, std::size_t count);
/// A step's factor: burst and jitter.
[[nodiscard]] double step_factor(const CaseConsumer&, std::size_t step) noexcept;

}   // namespace drawpoint::bench
