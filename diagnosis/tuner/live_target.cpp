#include <drawpoint/diagnosis/tuner/live_target.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <drawpoint/diagnosis/whatif/whatif.hpp>
#include <drawpoint/instrumentation/ledger/ledger_window.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/loop/cancel.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <drawpoint/instrumentation/host/detail/host_counters.hpp>

namespace drawpoint {

namespace {

/// The next pass may have been prefetched already: the order changes with the second one that begins.
constexpr int passes_until_order_changes = 2;

LoaderChange change_to(const LoaderSetting& setting) {
    return {.num_workers = setting.num_workers,
            .prefetch_depth = setting.prefetch_depth,
            .memory_budget = setting.memory_budget,
            .order = setting.order};
}

}   // namespace

struct LiveTarget::Impl {
    Impl(DataLoader& of, Recorder& to) : loader{of}, recorder{to} {}

    enum class Phase : std::uint8_t { idle, asked, settling, warming_up, counting, done };

    /// Called by the loop, between two steps.
    void step_is_over(const LoopState& state) {
        const std::int64_t now_ns = recorder.now_ns();
        ++taken;
        switch (phase) {
        case Phase::asked: return begin();
        case Phase::warming_up:
            if (left != 0 && --left != 0)
                return;
            phase = Phase::counting;
            left = steps;
            begin_ns = now_ns;
            begin_offered_ns = loader.counters().last_offered_ns;
            pause_ns = draws_ns = 0;
            before = late = host.read(now_ns);
            return;
        case Phase::counting:
            draws_ns += state.track != nullptr ? state.track->step().draw_ns : 0;
            if (--left == 0)
                end(now_ns);
            else if (left == 1)
                late = host.read(now_ns);
            return;
        case Phase::idle:
        case Phase::settling:
        case Phase::done: return;
        }
    }

    void begin() {
        taken = 0;
        try {
            passes_left = loader.options().order == setting.order ? 0 : passes_until_order_changes;
            loader.reconfigure(change_to(setting));
            left = warm_up;
            phase = passes_left != 0 ? Phase::settling : Phase::warming_up;
        } catch (...) {
            error = std::current_exception();
            finish();
        }
    }

    void end(std::int64_t now_ns) {
        end_ns = now_ns;
        const LoaderCounters counters = loader.counters();
        const std::int64_t drawn_ns = now_ns - begin_ns - pause_ns;
        // If fewer batches are made than drawn, prefetched ones hide it for a while.
        const bool offered = pause_ns == 0 && begin_offered_ns != no_stamp && counters.last_offered_ns != no_stamp;
        const std::int64_t made_ns = offered ? counters.last_offered_ns - begin_offered_ns : 0;
        const double seconds = static_cast<double>(std::max(drawn_ns, made_ns)) * 1e-9;
        block = {.batches_per_s = seconds > 0 ? static_cast<double>(steps) / seconds : 0,
                 .own_s = static_cast<double>(drawn_ns - draws_ns) * 1e-9 / static_cast<double>(steps),
                 .peak_bytes = counters.expected_bytes,
                 .steps = taken};
        const HostRow after = host.read(now_ns);
        if (after.busy_ns != no_stamp && before.busy_ns != no_stamp && seconds > 0) {
            const std::int64_t others_ns = after.busy_ns - before.busy_ns - (after.own_cpu_ns - before.own_cpu_ns);
            block.foreign_cores = static_cast<double>(others_ns) / static_cast<double>(now_ns - begin_ns);
        }
        finish();
    }

    void finish() {
        phase = Phase::done;
        busy.store(false, std::memory_order_relaxed);
        answered.notify_all();
    }

    /// Called by the asking thread.
    Block ask(const LoaderSetting& to, std::size_t warm_up_steps, std::size_t counted) {
        std::unique_lock lock{mutex};
        setting = to;
        warm_up = warm_up_steps;
        steps = std::max<std::size_t>(counted, 1);
        error = nullptr;
        phase = Phase::asked;
        busy.store(true, std::memory_order_relaxed);
        answered.wait(lock, [this] { return phase == Phase::done || over; });
        busy.store(false, std::memory_order_relaxed);
        if (phase != Phase::done)
            throw FitOver{"the training was over before the tuner was"};
        phase = Phase::idle;
        if (error)
            std::rethrow_exception(std::exchange(error, nullptr));
        return block;
    }

    DataLoader& loader;
    Recorder& recorder;
    std::atomic<bool> busy{false};   // while false, a step costs no more than reading this
    std::atomic<bool> to_be_ended{false};

    std::mutex mutex;
    std::condition_variable answered;
    Phase phase = Phase::idle;
    bool over = false;
    LoaderSetting setting;
    std::size_t warm_up = 0, steps = 0;
    Block block;
    std::exception_ptr error;
    std::int64_t begin_ns = 0, end_ns = 0;   // of the counted steps

    // Used by the loop, also under the mutex.
    std::size_t left = 0, taken = 0;
    int passes_left = 0;
    std::int64_t pause_ns = 0, paused_ns = no_stamp, draws_ns = 0, begin_offered_ns = no_stamp;
    HostCounters host;
    HostRow before, late;   // late: one step before the end, so that all steps up to there are in the window
};

LiveTarget::LiveTarget(DataLoader& loader, Recorder& recorder) : impl_{std::make_unique<Impl>(loader, recorder)} {}
LiveTarget::~LiveTarget() = default;

TuneTarget::Block LiveTarget::run(const LoaderSetting& setting, std::size_t warm_up, std::size_t steps) {
    return impl_->ask(setting, warm_up, steps);
}

RecordedRun LiveTarget::record(const LoaderSetting& setting, std::size_t warm_up, std::size_t steps) {
    (void)impl_->ask(setting, warm_up, steps);
    Ledger counted = window(impl_->recorder.ledger(), impl_->begin_ns, impl_->end_ns);
    // The recorder's own host rows may be further apart than a block is long.
    for (const HostRow& row : {impl_->before, impl_->late})
        counted.host.insert(std::ranges::upper_bound(counted.host, row.at_ns, {}, &HostRow::at_ns), row);
    RecordedRun run = steady_run(counted);
    run.setting.num_workers = setting.num_workers;
    run.setting.prefetch_depth = setting.prefetch_depth;
    run.setting.order = setting.order;
    run.setting.memory_budget = setting.memory_budget;
    return run;
}

std::size_t LiveTarget::most_workers() const { return impl_->loader.most_workers(); }

void LiveTarget::end_fit() noexcept { impl_->to_be_ended.store(true, std::memory_order_relaxed); }

void LiveTarget::before_draw() {
    if (impl_->to_be_ended.load(std::memory_order_relaxed))
        throw CancelFit{};
}

void LiveTarget::after_train() {
    if (!impl_->busy.load(std::memory_order_relaxed))
        return;
    const std::lock_guard lock{impl_->mutex};
    impl_->paused_ns = impl_->recorder.now_ns();
}

void LiveTarget::before_train() {
    if (!impl_->busy.load(std::memory_order_relaxed))
        return;
    const std::lock_guard lock{impl_->mutex};
    if (impl_->paused_ns != no_stamp)
        impl_->pause_ns += impl_->recorder.now_ns() - std::exchange(impl_->paused_ns, no_stamp);
    if (impl_->phase == Impl::Phase::settling && --impl_->passes_left == 0)
        impl_->phase = Impl::Phase::warming_up;
}

void LiveTarget::after_batch(const LoopState& state) {
    if (!impl_->busy.load(std::memory_order_relaxed) || !state.training.value_or(false))
        return;
    const std::lock_guard lock{impl_->mutex};
    impl_->step_is_over(state);
}

bool LiveTarget::fit_over() noexcept {
    const std::lock_guard lock{impl_->mutex};
    impl_->over = true;
    impl_->answered.notify_all();
    return false;
}

Tuning tune_live(LiveTarget& target, const TuneOptions& options, const std::function<void()>& fit) {
    std::optional<Tuning> tuning;
    std::exception_ptr failure;
    std::exception_ptr fit_failure;
    std::thread tuner{[&] {
        try {
            tuning = tune(target, options);
        } catch (...) {
            failure = std::current_exception();
        }
        target.end_fit();
    }};
    try {
        fit();
    } catch (...) {
        fit_failure = std::current_exception();
    }
    target.fit_over();   // also if no fit began
    tuner.join();
    for (const std::exception_ptr& error : {fit_failure, failure})
        if (error)
            std::rethrow_exception(error);
    return *tuning;
}

}   // namespace drawpoint
