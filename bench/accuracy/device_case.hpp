#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>

#include "case.hpp"

namespace drawpoint::bench {

/// A training run on a device with a known fault. It runs the loader, the loop and the recorder themselves, on the
/// simulated threads of tests/simulation and the simulated device of tests/torch/fake_accelerator: what a change to it
/// gains is computed by running the changed case, to the nanosecond, and takes a fraction of a second.
struct DeviceCase {
    std::string name;
    LoaderSetting setting;
    std::string stage = "decode";   ///< name of the stage in which a sample waits
    double sample_us = 1000;        ///< how long
    Variation samples;
    std::size_t device_prefetch = 2;
    bool pinned = true;   ///< host memory that the device reads while the loop goes on
    double copy_us = 300;
    std::size_t kernels = 30;                     ///< of a step
    double kernel_us = 100, launch_us = 5;        ///< of each: on the device; of the loop's thread
    double callback_us = 0;                       ///< of the loop's thread, at the end of a step
    Variation step;                               ///< of all three
    enum class Sync { none, loss, end } sync{};   ///< where the loop waits for the device in each step
    std::size_t steps = 500;
};

/// Runs the case, with the demands that `seed` draws, and records it.
[[nodiscard]] Ledger run_case(const DeviceCase&, std::uint64_t seed);

/// Steps a second of the device, without the first 60.
[[nodiscard]] double rate_of(const Ledger&);

/// Draws a case: the same one for the same arguments.
[[nodiscard]] DeviceCase draw_device_case(std::uint64_t seed, std::size_t number);

/// What a change really gains.
struct DeviceGain {
    std::string key;   ///< spelt as `Intervention::key()`
    double gain = 0;
};

struct DeviceTruth {
    double rate = 0;                 ///< of the case as it is
    std::vector<DeviceGain> gains;   ///< the largest first
    std::set<Verdict> verdicts;      ///< that are right: see README.md
};

/// Runs every change of the case, with the demands that `seed` draws.
[[nodiscard]] DeviceTruth truth_of(const DeviceCase&, std::uint64_t seed);

/// The case, recorded and diagnosed.
struct DeviceScore {
    DeviceCase of;
    DeviceTruth truth;
    Diagnosis said;
    double replay_error = 0;           ///< of the recorded run's rate, |replayed - measured| / measured
    std::vector<double> gain_errors;   ///< of the rate with a change, |predicted - real| / real
    [[nodiscard]] bool is_right() const { return !said.abstained && truth.verdicts.contains(said.verdict); }
};

/// Records the case, four times as long and with other demands than those that its truth is computed with.
[[nodiscard]] DeviceScore score_device_case(const DeviceCase&, std::uint64_t seed);

[[nodiscard]] std::string line_of(const DeviceScore&);
[[nodiscard]] std::string to_text(const DeviceCase&);

}   // namespace drawpoint::bench
