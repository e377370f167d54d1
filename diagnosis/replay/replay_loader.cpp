// The simulated loader's decisions, as in pipeline/prefetch_core.cpp, and its passes.
#include "diagnosis/replay/replay_loader.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <utility>

#include <drawpoint/pipeline/loader/machine/slot_bytes.hpp>

namespace drawpoint {
namespace {

constexpr std::uint64_t endless = ~std::uint64_t{0};

}   // namespace

ReplayLoader::ReplayLoader(const RecordedRun& run, const ReplayOptions& options, const MemoryPlan& plan,
                           const ReplayDemands& demands, double cores, std::uint64_t steps, ReplayRows* rows)
    : run_{run},
      options_{options},
      plan_{plan},
      demands_{demands},
      rows_{rows},
      time_{cores, options.core_efficiency,
            std::max<std::size_t>(options.setting.num_workers, 1) + 1 + 3 * plan.read_concurrency,
            static_cast<VirtualTime::Entity>(std::max<std::size_t>(options.setting.num_workers, 1))},
      policy_{
          {.batch_size = options.setting.batch_size,
           .num_workers = options.setting.num_workers,
           .prefetch_depth = plan.prefetch_depth,
           .order = options.setting.order,
           .batches_budget_bytes = plan.batches_budget_bytes,
           .batch_bytes_hint = run.collates ? plan.slot_bytes : 0,
           .cores = cores == 0 ? 0 : static_cast<std::size_t>(std::ceil(std::max(run.cores, options.cores - 0.5)))}},
      reads_{plan.read_concurrency, options.setting.num_workers, options.setting.batch_size,
             options.setting.memory_budget == 0 ? 0 : plan.in_flight_bytes},
      steps_{steps},
      inline_{options.setting.num_workers == 0},
      workers_(std::max<std::size_t>(options.setting.num_workers, 1)),
      reader_parts_(3 * plan.read_concurrency, 0),
      pass_end_{run.pass_samples == 0 ? endless : 0},
      most_spin_ns_{std::ceil(run.cores) > static_cast<double>(options.setting.num_workers) ? long_spin_ns : spin_ns} {
    if (run.pass_samples != 0) {
        const std::uint64_t before = options.warm_up_steps * options.setting.batch_size % run.pass_samples;
        pass_begin_ = -static_cast<std::int64_t>((run.first_in_pass + run.pass_samples - before) % run.pass_samples);
        pass_end_ = static_cast<std::uint64_t>(pass_begin_ + static_cast<std::int64_t>(run.pass_samples));
    }
    draw_ns_.reserve(steps);
    step_ns_.reserve(steps);
    sleeping_.reserve(workers_.size());
    benched_.reserve(workers_.size());
}

void ReplayLoader::run() {
    begin_draw();
    if (!inline_)
        for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) {
            policy_.begin();
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
        else
            step_reader(*entity - loop - 1);
    }
}

// ---------------------------------------------------------------------------------------------- decisions

void ReplayLoader::turn(bool loop_waits, bool leaves) {
    std::size_t wakes = 0;
    do {
        if (loop_waits || armed_ || !policy_.claims_whole_batches() || policy_.parked() != 0 || !work_is_open())
            take_up();
        const bool counts = policy_.counts_bytes();
        if (counts)
            count_bytes();
        std::uint64_t samples = 0;
        while (const auto admission = policy_.admit(inline_ || loop_waits ? position_ : 0,
                                                    counts ? opened_ - std::min(current_, opened_) : 0)) {
            if (counts)
                trim_slots();
            open(*admission);
            samples += slots_[admission->slot].size;
        }
        if (counts)
            trim_slots();
        while (const auto batch = policy_.hand_over())
            publish(*batch);
        wakes += policy_.wake(samples);
        if ((loop_waits || leaves) && wakes == 0 && policy_.parked() > 0 && work_is_open()) {
            policy_.woken(1);
            ++wakes;
        }
        if (armed_ && policy_.parked() == 0) {
            if (std::exchange(threshold_, nobody) == nobody)
                --wakes;
            armed_ = false;
        }
    } while (policy_.parked() > 0 && !is_armed() && !arm());
    wake(wakes);
    if (next_wanted_ && !loop_waits && policy_.admitted() == policy_.limit() && !work_is_open()) {
        next_wanted_ = false;
        prepared_ = extend();
        turn(false);
    }
}

void ReplayLoader::take_up() noexcept {
    if (armed_ && threshold_ == nobody) {
        armed_ = false;
        policy_.woken(1);
    } else if (armed_ && back_ != 0) {
        threshold_ = policy_.wake_threshold();
    }
    for (std::uint64_t left = std::exchange(back_, 0); left != 0; left &= left - 1)
        policy_.release(static_cast<std::uint32_t>(std::countr_zero(left)));
}

bool ReplayLoader::is_armed() const noexcept {
    return armed_ && (threshold_ == nobody || threshold_ <= policy_.wake_threshold());
}

bool ReplayLoader::arm() noexcept {
    if (back_ != 0)
        return false;
    if (armed_ && threshold_ <= policy_.wake_threshold())
        return true;
    threshold_ = policy_.wake_threshold();
    armed_ = true;
    return true;
}

std::uint32_t ReplayLoader::size_at(std::uint64_t position) const noexcept {
    const std::uint64_t size = options_.setting.batch_size;
    if (pass_end_ == endless)
        return static_cast<std::uint32_t>(size);
    const auto in_pass = static_cast<std::uint64_t>(static_cast<std::int64_t>(position) - pass_begin_);
    return static_cast<std::uint32_t>(std::min(size - in_pass % size, pass_end_ - position));
}

void ReplayLoader::open(LoaderPolicy::Admission admission) {
    Slot& s = slots_[admission.slot];
    s.position = admitted_samples_;
    s.size = s.remaining = size_at(s.position);
    s.next = 0;
    admitted_samples_ += s.size;
    if (!policy_.counts_bytes() && std::exchange(s.arrays, plan_.slot_bytes) == 0)
        most_slots_bytes_ += plan_.slot_bytes;
    if (rows_) {
        const auto in_pass = static_cast<std::uint64_t>(static_cast<std::int64_t>(s.position) - pass_begin_);
        s.row = {.epoch = admitted_epoch_,
                 .batch = static_cast<std::uint32_t>(in_pass / options_.setting.batch_size),
                 .slot = admission.slot,
                 .size = s.size,
                 .admitted_ns = time_.now_ns()};
    }
    if (reads_.any())
        reads_.want(admission.slot, s.size);
    slot_of_[admission.batch % slot_of_.size()] = admission.slot;
    opened_ = admission.batch + 1;
    if (reads_.any())
        begin_reads(false);
    notify_spinning();
}

void ReplayLoader::publish(const LoaderPolicy::HandOver& batch) {
    cells_[batch.position % cells_.size()] = batch.slot;
    published_ = batch.position + 1;
    slots_[batch.slot].row.offered_ns = time_.now_ns();
    if (batch.position != position_)
        return;
    const auto loop = static_cast<std::uint32_t>(workers_.size());
    if (loop_ == LoopState::spinning) {
        time_.wait(loop, 0);
    } else if (loop_ == LoopState::suspended) {
        loop_ = LoopState::waking;
        time_.wait(loop, options_.costs.wake_ns);
    }
}

void ReplayLoader::wake(std::size_t wakes) {
    for (; wakes != 0; --wakes) {
        if (sleeping_.empty()) {
            ++tokens_;
            continue;
        }
        // One that still yields its core to others comes to sleep after those that sleep.
        auto first = std::ranges::find_if(sleeping_, [this](std::uint32_t worker) { return !time_.queues(worker); });
        if (first == sleeping_.end())
            first = sleeping_.begin();
        const std::uint32_t worker = *first;
        sleeping_.erase(first);
        workers_[worker].state = WorkerState::waking;
        time_.wait(worker, options_.costs.wake_ns);
    }
}

void ReplayLoader::give_back(std::uint32_t slot) {
    back_ |= std::uint64_t{1} << slot;
    if (threshold_ != nobody && --threshold_ == 0) {
        threshold_ = nobody;
        wake(1);
    }
    notify_spinning();
}

void ReplayLoader::notify_spinning() {
    if (spinning_ != 0)
        for (std::uint32_t worker = 0; worker < workers_.size(); ++worker)
            if (workers_[worker].state == WorkerState::spinning)
                time_.wait(worker, 0);
}

// ---------------------------------------------------------------------------------------------- passes

std::uint64_t ReplayLoader::extend() {
    const std::uint64_t before = policy_.limit();
    std::uint64_t batches = steps_ + LoaderPolicy::max_slots;
    if (pass_end_ != endless) {
        if (before != 0) {
            pass_begin_ = static_cast<std::int64_t>(pass_end_);
            pass_end_ += run_.pass_samples;
            ++admitted_epoch_;
        }
        const std::uint64_t size = options_.setting.batch_size;
        const auto done = static_cast<std::uint64_t>(static_cast<std::int64_t>(admitted_samples_) - pass_begin_) / size;
        batches = (run_.pass_samples + size - 1) / size - done;
    }
    if (options_.ends)
        batches = std::min(batches, steps_ - before);
    policy_.extend(batches);
    return batches;
}

void ReplayLoader::begin_pass() {
    undrawn_ = prepared_ != 0 ? std::exchange(prepared_, 0) : extend();
    next_wanted_ = !inline_ && pass_end_ != endless && !(options_.ends && policy_.limit() == steps_);
    if (rows_)
        rows_->begin_pass(time_.now_ns());
    if (!inline_)
        turn(false);
}

}   // namespace drawpoint
