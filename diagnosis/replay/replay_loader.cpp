// The simulated loader: turns and passes.
#include "diagnosis/replay/replay_loader.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <utility>

namespace drawpoint {
namespace {

constexpr std::uint64_t endless = ~std::uint64_t{0};

/// Entities beside the workers and the loop: what sends a PyTorch worker's batches, or readers.
std::size_t helpers_of(const LoaderSetting& setting, const MemoryPlan& plan) noexcept {
    return has_worker_processes(setting) ? setting.num_workers : 3 * plan.read_concurrency;
}

/// Places of batches that are not given back.
std::size_t slots_of(const LoaderSetting& setting) noexcept {
    return has_worker_processes(setting) ? setting.prefetch_depth + 1 : LoaderPolicy::max_slots;
}

}   // namespace

ReplayLoader::ReplayLoader(const RecordedRun& run, const ReplayOptions& options, const MemoryPlan& plan,
                           const ReplayDemands& demands, double cores, std::uint64_t steps, ReplayRows* rows)
    : run_{run},
      options_{options},
      plan_{plan},
      demands_{demands},
      rows_{rows},
      time_{cores, options.core_efficiency,
            std::max<std::size_t>(options.setting.num_workers, 1) + 1 + helpers_of(options.setting, plan),
            static_cast<VirtualTime::Entity>(std::max<std::size_t>(options.setting.num_workers, 1)), run.scheduler},
      machine_{
          {.batch_size = options.setting.batch_size,
           .num_workers = options.setting.num_workers,
           .prefetch_depth = plan.prefetch_depth,
           .order = options.setting.order,
           .batches_budget_bytes = plan.batches_budget_bytes,
           .batch_bytes_hint = run.collates ? plan.slot_bytes : 0,
           .cores = cores == 0 ? 0 : static_cast<std::size_t>(std::ceil(std::max(run.cores, options.cores - 0.5)))},
          {.num_workers = options.setting.num_workers,
           .prefetch_depth = plan.prefetch_depth,
           .read_concurrency = plan.read_concurrency,
           .sample_sets = plan.sample_sets,
           .batches_budget_bytes = plan.batches_budget_bytes,
           .worker_bytes = run.worker_bytes}},
      reads_{plan.read_concurrency, options.setting.num_workers, options.setting.batch_size,
             options.setting.memory_budget == 0 ? 0 : plan.in_flight_bytes},
      steps_{steps},
      inline_{options.setting.num_workers == 0},
      pytorch_{has_worker_processes(options.setting)
                   ? std::optional<PyTorchPolicy>{std::in_place, options.setting.num_workers,
                                                  options.setting.prefetch_depth, options.setting.order}
                   : std::nullopt},
      workers_(std::max<std::size_t>(options.setting.num_workers, 1)),
      sent_(pytorch_ ? options.setting.num_workers : 0),
      sending_(sent_.size()),
      reader_phases_(3 * plan.read_concurrency, Phase::begins),
      slots_(slots_of(options.setting)),
      cells_(std::bit_ceil(slots_.size())),
      pass_end_{run.pass_samples == 0 ? endless : 0},
      wake_ns_{run.loop_wake_ns != 0 ? run.loop_wake_ns : options.costs.wake_ns},
      read_wake_ns_{run.read_wake_ns != 0 ? run.read_wake_ns : wake_ns_},
      spin_{static_cast<std::size_t>(std::ceil(run.cores)), options.setting.num_workers},
      yields_{static_cast<std::uint32_t>(
          SpinPolicy::worker_yields(static_cast<std::size_t>(std::ceil(run.cores)), options.setting.num_workers))} {
    if (run.device_buffers != 0)
        device_.emplace(buffers_of(run, options.change),
                        options.change.pinned && run.copies == Copies::pageable ? Copies::apart : run.copies);
    if (run.pass_samples != 0) {
        const std::uint64_t before = options.warm_up_steps * options.setting.batch_size % run.pass_samples;
        pass_begin_ = -static_cast<std::int64_t>((run.first_in_pass + run.pass_samples - before) % run.pass_samples);
        pass_end_ = static_cast<std::uint64_t>(pass_begin_ + static_cast<std::int64_t>(run.pass_samples));
    }
    draw_ns_.reserve(steps);
    step_ns_.reserve(steps);
    sleeping_.reserve(workers_.size());
    resting_.reserve(workers_.size());
}

void ReplayLoader::run() {
    begin_draw();
    if (!inline_)
        for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
            (void)machine_.arrives();
            run_worker(worker);
        }
    const auto loop = static_cast<std::uint32_t>(workers_.size());
    while (!is_over_) {
        const auto entity = time_.next();
        if (!entity)
            throw std::logic_error{"replay: nobody has anything left to wait for"};
        ++events_;
        if (*entity < loop)
            run_worker(*entity);
        else if (*entity == loop)
            step_loop();
        else if (pytorch_)
            step_sender(*entity - loop - 1);
        else
            step_reader(*entity - loop - 1);
    }
}

// ---------------------------------------------------------------------------------------------- turns

void ReplayLoader::turn(bool loop_waits, bool leaves) {
    if (pytorch_)
        return turn_pytorch();
    std::size_t wakes = 0;
    const LoaderMachine::Effects* effects;
    do {
        effects = &machine_.turn(look(loop_waits, leaves));
        carry_out(*effects);
        wakes += effects->wake;
        if (effects->disarm)
            gate_.disarm();
    } while (effects->arm && !gate_.arm(*effects->arm));
    const bool begins_next = effects->begin_next;
    wants_order_ = effects->prepare_order;
    wake(wakes);
    if (begins_next) {
        machine_.begin_next();
        admitted_ahead_ = extend();
        turn(loop_waits);
    }
}

LoaderMachine::Seen ReplayLoader::look(bool loop_waits, bool leaves) noexcept {
    LoaderMachine::Seen seen{.drawn = inline_ || loop_waits ? position_ : 0,
                             .unclaimed = opened_ - current_,
                             .loop_waits = loop_waits,
                             .leaves = leaves};
    if (machine_.takes_up(loop_waits, gate_.is_armed(), work_is_open()))
        gate_.take_up(machine_.policy().wake_threshold(), seen);
    if (machine_.policy().counts_bytes())
        seen.held = &held_bytes();
    return seen;
}

void ReplayLoader::carry_out(const LoaderMachine::Effects& effects) {
    for (std::uint64_t left = effects.trim; left != 0; left &= left - 1) {
        Slot& s = slots_[static_cast<std::size_t>(std::countr_zero(left))];
        s.arrays = s.samples = 0;
    }
    for (const LoaderMachine::Open& batch : effects.open)
        open(batch);
    for (const LoaderPolicy::HandOver& batch : effects.hand_over)
        publish(batch.slot);
}

void ReplayLoader::open(const LoaderMachine::Open& batch) {
    begin_slot(batch.slot, batch.size);
    if (!machine_.policy().counts_bytes() && std::exchange(slots_[batch.slot].arrays, plan_.slot_bytes) == 0)
        machine_.holds_slots(slots_bytes_ += plan_.slot_bytes);
    slot_of_[batch.batch % slot_of_.size()] = batch.slot;
    opened_ = batch.batch + 1;
    if (reads_.any()) {
        reads_.want(batch.slot, batch.size);
        begin_reads(false);
    }
    notify_spinning();
}

void ReplayLoader::begin_slot(std::uint32_t slot, std::uint32_t size) {
    Slot& s = slots_[slot];
    s.position = admitted_samples_;
    s.size = s.remaining = size;
    s.next = 0;
    admitted_samples_ += s.size;
    if (rows_) {
        const auto in_pass = static_cast<std::uint64_t>(static_cast<std::int64_t>(s.position) - pass_begin_);
        s.row = {.epoch = static_cast<std::uint32_t>(machine_.epoch()),
                 .batch = static_cast<std::uint32_t>(in_pass / options_.setting.batch_size),
                 .slot = slot,
                 .size = s.size,
                 .admitted_ns = time_.now_ns()};
    }
}

void ReplayLoader::publish(std::uint32_t slot) {
    const std::uint64_t position = published_++;
    cells_[position % cells_.size()] = slot;
    slots_[slot].row.offered_ns = time_.now_ns();
    if (position != position_)
        return;
    const auto loop = static_cast<std::uint32_t>(workers_.size());
    if (loop_ == LoopState::spinning) {
        time_.wait(loop, 0);
    } else if (loop_ == LoopState::suspended) {
        loop_ = LoopState::waking;
        time_.wait(loop, pytorch_ ? 0 : wake_ns_);   // receiving the batch includes it
    }
}

void ReplayLoader::wake(std::size_t wakes) {
    for (; wakes != 0; --wakes) {
        if (sleeping_.empty()) {
            ++tokens_;
            continue;
        }
        // Workers that are asleep come before those that yield.
        auto first = std::ranges::find_if(sleeping_, [this](std::uint32_t worker) { return !time_.yields(worker); });
        if (first == sleeping_.end())
            first = sleeping_.begin();
        const std::uint32_t worker = *first;
        sleeping_.erase(first);
        if (time_.yields(worker) && options_.costs.look_ns > 0) {
            workers_[worker].state = WorkerState::looking;
            time_.compute(worker, options_.costs.look_ns);
            continue;
        }
        workers_[worker].state = WorkerState::waking;
        time_.wait(worker, wake_ns_);
    }
}

void ReplayLoader::give_back(std::uint32_t slot) {
    if (pytorch_) {
        slots_bytes_ -= slots_[slot].arrays;
        return pytorch_->give_back(slot);
    }
    if (gate_.give(slot))
        wake(1);
    notify_spinning();
}

void ReplayLoader::notify_spinning() {
    if (spinning_ != 0)
        for (std::uint32_t worker = 0; worker < workers_.size(); ++worker)
            if (workers_[worker].state == WorkerState::spinning)
                time_.stop(worker);
}

// ---------------------------------------------------------------------------------------------- passes

std::uint64_t ReplayLoader::limit() const noexcept { return pytorch_ ? pytorch_->limit() : machine_.policy().limit(); }

std::uint64_t ReplayLoader::extend() {
    const std::uint64_t before = limit();
    const std::uint64_t size = options_.setting.batch_size;
    LoaderMachine::PassShape pass{.batches = steps_ + slots_.size(), .samples = endless};
    if (pass_end_ != endless) {
        if (before != 0) {
            pass_begin_ = static_cast<std::int64_t>(pass_end_);
            pass_end_ += run_.pass_samples;
        }
        const auto done = static_cast<std::uint64_t>(static_cast<std::int64_t>(admitted_samples_) - pass_begin_);
        pass = {.batches = (run_.pass_samples + size - 1) / size - done / size,
                .samples = pass_end_ - admitted_samples_,
                .first_size = static_cast<std::uint32_t>(size - done % size)};
    }
    if (options_.ends)
        pass.batches = std::min(pass.batches, steps_ - before);
    if (pytorch_) {
        first_size_ = pass.first_size;
        pytorch_->extend(pass.batches);
    } else {
        machine_.extend(pass);
    }
    return pass.batches;
}

bool ReplayLoader::begin_pass() {
    if (machine_.begin_pass(next_epoch_)) {
        undrawn_ = std::exchange(admitted_ahead_, 0);
        start_pass();
        return true;
    }
    if (machine_.is_preparing()) {
        loop_ = LoopState::awaiting_order;
        return false;
    }
    (void)machine_.abandon(0);   // no worker is to begin the order now
    loop_ = LoopState::ordering;
    order_phase_ = next_epoch_ == 0 ? Phase::ends : Phase::begins;   // the replay begins within a pass
    if (!order(static_cast<std::uint32_t>(workers_.size()), order_phase_))
        return false;
    end_ordering();
    return true;
}

void ReplayLoader::end_ordering() {
    machine_.orders(next_epoch_);
    undrawn_ = extend();
    start_pass();
}

void ReplayLoader::start_pass() {
    ++next_epoch_;
    const bool is_last = options_.ends && limit() == steps_;
    machine_.want_next(!inline_ && !pytorch_ && pass_end_ != endless && !is_last, demands_.order().ns() == 0);
    pass_start_ns_ = time_.now_ns();
    if (rows_)
        rows_->begin_pass(draw_begin_ns_);
    if (!inline_) {
        turn(false);
        wants_order_ = false;   // only workers compute it
    }
}

bool ReplayLoader::order(std::uint32_t entity, Phase& phase) {
    const Demand& demand = demands_.order();
    switch (phase) {
    case Phase::begins:
        if (rows_)
            rows_->begin_order(time_.now_ns());
        phase = Phase::waits;
        if (demand.wait_ns > 0) {
            time_.wait(entity, demand.wait_ns);
            return false;
        }
        [[fallthrough]];
    case Phase::waits:
        phase = Phase::computes;
        if (demand.cpu_ns > 0) {
            time_.compute(entity, demand.cpu_ns);
            return false;
        }
        [[fallthrough]];
    case Phase::computes:
        if (rows_)
            rows_->end_order(
                entity < workers_.size() ? std::optional{static_cast<std::uint16_t>(entity)} : std::nullopt,
                machine_.is_preparing() ? machine_.epoch() + 1 : next_epoch_, time_.now_ns(), demand.cpu_ns);
        [[fallthrough]];
    case Phase::ends: break;
    }
    return true;
}

}   // namespace drawpoint
