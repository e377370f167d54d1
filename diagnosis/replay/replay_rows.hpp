#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <drawpoint/diagnosis/replay/replay.hpp>

#include "diagnosis/replay/replay_device.hpp"

namespace drawpoint {

/// Builds the ledger of a simulated run, row by row.
class ReplayRows {
public:
    ReplayRows(const RecordedRun&, const LoaderSetting&, std::size_t workers);

    /// Begins a pass and ends the one before.
    void begin_pass(std::int64_t now_ns);
    [[nodiscard]] std::uint32_t epoch() const noexcept { return epoch_; }
    void pause(Span, std::int64_t begin_ns, std::int64_t ns);

    void begin_order(std::int64_t now_ns) noexcept { order_begin_ns_ = now_ns; }
    void end_order(std::optional<std::uint16_t> worker, std::uint64_t epoch, std::int64_t now_ns, std::int64_t cpu_ns);
    void begin_sample(std::uint32_t worker, std::int64_t now_ns) noexcept {
        open_[worker] = {.row = {.begin_ns = now_ns}};
    }
    void read_ahead(std::uint32_t worker, std::int64_t begin_ns, std::int64_t end_ns) noexcept;
    void end_stage(std::uint32_t worker, std::int64_t now_ns, std::int64_t cpu_ns) noexcept;
    /// `waited_ns`: how long the sample was off its core for another reason than waiting for one.
    void end_sample(std::uint32_t worker, const BatchRow& batch, std::uint32_t place, std::uint64_t index,
                    std::uint64_t bytes, std::int64_t waited_ns);
    void add(const BatchRow& row) { ledger_.batches.push_back(row); }
    /// What the loop waited for in a step.
    struct Waits {
        std::int64_t device_until_ns = no_stamp;   // in its draw, first of all
        std::int64_t resumed_ns = 0;               // when it had the batch in host memory
        std::int64_t in_step_ns = 0;               // for the device
    };
    /// `end_ns`: when the batch was given back. `next_ns`: when the next draw could begin.
    void step(const BatchRow&, std::int64_t begin_ns, std::int64_t end_ns, std::int64_t next_ns, const StepDemand&,
              const Waits&);
    /// What the device did in that step; the rest of the row is filled in.
    void device_step(DeviceStepRow);
    void transfer(const ReplayDevice::Times&, const BatchRow&, std::uint64_t bytes);
    [[nodiscard]] Ledger finish(std::int64_t now_ns);

private:
    struct Open {
        SampleRow row;
        std::array<StageRow, max_stages> stages{};
        std::uint32_t stage_count = 0;
    };
    void end_pass(std::int64_t now_ns);

    Ledger ledger_;
    std::vector<Open> open_;
    std::vector<SpanRow> pauses_;   // of the pass
    std::int64_t pass_begin_ns_ = 0, order_begin_ns_ = 0;
    std::uint32_t epoch_ = 0;
    bool in_pass_ = false;
};

}   // namespace drawpoint
