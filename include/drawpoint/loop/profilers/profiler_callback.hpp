#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/loop/callback.hpp>
#include <drawpoint/loop/profilers/profiler.hpp>

namespace drawpoint {

/// Drives any `Profiler` by the loop's events, with the actions of `lightning_hooks` and `lightning_spans`: it sets the
/// profiler up when a fit (or a validation alone) begins, starts and stops actions, and calls `describe` when the fit
/// ends. Actions left open by a cancel or an exception are stopped (when a validation alone is left: at the beginning
/// of the next run). A report that cannot be written is reported by `error()` and on the profiler's output. It consists
/// of two callbacks, of order -9 and 49, so that the time of the callbacks between them counts towards their hooks.
class ProfilerCallback {
public:
    /// The profiler must outlive it.
    explicit ProfilerCallback(Profiler& profiler, int local_rank = 0, std::filesystem::path log_dir = {});
    ProfilerCallback(const ProfilerCallback&) = delete;
    ProfilerCallback& operator=(const ProfilerCallback&) = delete;

    void add_to(CallbackList& callbacks);
    [[nodiscard]] const std::string& error() const noexcept { return error_; }

private:
    class Stamp final : public Callback {
    public:
        Stamp(ProfilerCallback& owner, bool after) noexcept : owner_{&owner}, after_{after} {}
        [[nodiscard]] std::string_view name() const noexcept override { return "ProfilerCallback"; }
        [[nodiscard]] EventSet events() const noexcept override;
        [[nodiscard]] int order() const noexcept override { return after_ ? 49 : -9; }
        void on(Event event, LoopState& state) override { owner_->edge({event, after_}, state); }
        bool fit_over() noexcept override;

    private:
        ProfilerCallback* owner_;
        bool after_;
    };
    void edge(Edge at, const LoopState& state);
    void start(std::string_view action);
    void stop(std::string_view action);
    void stop_down_to(std::size_t depth);
    void report();

    Profiler* profiler_;
    int local_rank_;
    std::filesystem::path log_dir_;
    Stamp before_{*this, false}, after_{*this, true};
    std::vector<std::string_view> open_;             // of static storage, in the order of their start
    std::array<std::size_t, event_count> depth_{};   // number of open actions when a level began, by its before event
    bool in_fit_ = false;
    std::string error_;
};

}   // namespace drawpoint
