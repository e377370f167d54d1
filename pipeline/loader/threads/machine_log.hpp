#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include <drawpoint/pipeline/loader/machine/detail/loader_machine.hpp>

namespace drawpoint {

/// Logs the calls of a LoaderMachine and its decisions, for a test that makes the same calls to a fresh machine.
class MachineLog {
public:
    using Check = std::function<bool(LoaderMachine&)>;   ///< repeats a call; whether the decision is the same

    /// While one of these lives, every loader that is made logs to it. Memory grows by about 200 bytes per decision.
    class Collector {
    public:
        Collector() { current().store(this); }
        ~Collector() { current().store(nullptr); }
        Collector(const Collector&) = delete;
        Collector& operator=(const Collector&) = delete;
        [[nodiscard]] std::shared_ptr<MachineLog> begin(const LoaderMachine& first) {
            const std::lock_guard lock{mutex_};
            return logs_.emplace_back(std::make_shared<MachineLog>(first));
        }
        [[nodiscard]] const std::vector<std::shared_ptr<MachineLog>>& logs() const noexcept { return logs_; }

        [[nodiscard]] static std::atomic<Collector*>& current() noexcept {
            static std::atomic<Collector*> collector{nullptr};
            return collector;
        }

    private:
        std::mutex mutex_;
        std::vector<std::shared_ptr<MachineLog>> logs_;
    };

    explicit MachineLog(const LoaderMachine& first) : first_{first} {}
    void add(Check check) { checks_.push_back(std::move(check)); }

    [[nodiscard]] std::size_t size() const noexcept { return checks_.size(); }
    /// Repeats all calls on a copy of the machine as it was when made. The number of the first decision that differs,
    /// or nullopt.
    [[nodiscard]] std::optional<std::size_t> replay() const { return replay(first_); }
    [[nodiscard]] std::optional<std::size_t> replay(LoaderMachine machine) const {
        for (std::size_t i = 0; i < checks_.size(); ++i)
            if (!checks_[i](machine))
                return i;
        return std::nullopt;
    }

private:
    LoaderMachine first_;
    std::vector<Check> checks_;
};

/// A LoaderMachine whose decisions are logged if a test asks for it.
class LoggedMachine {
public:
    LoggedMachine(const PolicyOptions& policy, const LiveLimits& limits) : machine_{policy, limits} {
        if (MachineLog::Collector* const collector = MachineLog::Collector::current().load())
            log_ = collector->begin(machine_);
    }

    [[nodiscard]] const LoaderMachine* operator->() const noexcept { return &machine_; }

    /// decide<&LoaderMachine::f>(arguments…) calls machine.f(arguments…).
    template <auto decision, class... Arguments>
    auto decide(const Arguments&... arguments) noexcept {
        if constexpr (std::is_void_v<std::invoke_result_t<decltype(decision), LoaderMachine&, const Arguments&...>>) {
            std::invoke(decision, machine_, arguments...);
            if (log_) [[unlikely]]
                log_->add([=](LoaderMachine& machine) {
                    std::invoke(decision, machine, arguments...);
                    return true;
                });
        } else {
            const auto decided = std::invoke(decision, machine_, arguments...);
            if (log_) [[unlikely]]
                log_->add(
                    [=](LoaderMachine& machine) { return std::invoke(decision, machine, arguments...) == decided; });
            return decided;
        }
    }
    const LoaderMachine::Effects& turn(const LoaderMachine::Seen& seen) noexcept {
        const LoaderMachine::Effects& effects = machine_.turn(seen);
        if (log_) [[unlikely]]
            log_->add([asked = LoaderMachine::Seen{seen},
                       held = seen.held != nullptr ? *seen.held : LoaderMachine::HeldBytes{},
                       effects](LoaderMachine& machine) mutable {
                asked.held = &held;
                return machine.turn(asked) == effects;
            });
        return effects;
    }

private:
    LoaderMachine machine_;
    std::shared_ptr<MachineLog> log_;   // null: nothing is logged
};

}   // namespace drawpoint
