#pragma once

#include <atomic>
#include <cstddef>
#include <csignal>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/data.hpp"
#include "cli/options.hpp"
#include <drawpoint/loop/callback.hpp>
#include <drawpoint/loop/cancel.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>
#include <drawpoint/pipeline/torch/device_loader.hpp>

namespace drawpoint::cli {

/// Stops the loop, and the loaders it may be waiting for, once a signal asked for it.
class StopRequest final : public Callback {
public:
    [[nodiscard]] std::string_view name() const noexcept override { return "StopRequest"; }
    [[nodiscard]] EventSet events() const noexcept override { return {Event::before_draw}; }
    void on(Event, LoopState&) override {
        if (asked())
            throw CancelFit{reason()};
    }

    /// Any thread.
    void ask(int signal) noexcept {
        signal_.store(signal, std::memory_order_release);
        const std::lock_guard lock{mutex_};
        for (DataLoader* loader : loaders_)
            loader->request_stop();
    }
    [[nodiscard]] bool asked() const noexcept { return signal_.load(std::memory_order_acquire) != 0; }
    [[nodiscard]] std::string_view reason() const noexcept {
        const int signal = signal_.load(std::memory_order_acquire);
        return signal == SIGTERM ? "SIGTERM" : signal == SIGHUP ? "SIGHUP" : "Ctrl-C";
    }

    /// Stops these loaders too, as long as it lives; they outlive it.
    class Watch {
    public:
        Watch(StopRequest& stop, std::vector<DataLoader*> loaders) : stop_{&stop} { stop.watch(std::move(loaders)); }
        Watch(const Watch&) = delete;
        Watch& operator=(const Watch&) = delete;
        ~Watch() { stop_->watch({}); }

    private:
        StopRequest* stop_;
    };

private:
    void watch(std::vector<DataLoader*> loaders) {
        const std::lock_guard lock{mutex_};
        loaders_ = std::move(loaders);
        if (asked())
            for (DataLoader* loader : loaders_)
                loader->request_stop();
    }

    std::atomic<int> signal_{0};   // the one that asked to stop; 0: none did
    std::mutex mutex_;
    std::vector<DataLoader*> loaders_;
};

/// How a fit went.
struct Outcome {
    std::optional<std::string> stopped;   ///< why it ended early
    std::string error;                    ///< what is wrong; empty: nothing
    std::optional<double> accuracy;
    std::string digest;
};

/// The loaders of a training run.
struct Loaders {
    /// The runtime and the data outlive this. Throws UsageError naming an option, and DeviceError.
    Loaders(Runtime&, const ProfileOptions&, const Data&);

    DataLoader train;
    std::optional<DataLoader> valid;
    std::optional<DeviceLoader> train_on_device, valid_on_device;   ///< around these, with --device
    std::size_t inputs;                                             ///< values of a sample

    [[nodiscard]] std::vector<DataLoader*> all();
};

/// Throws UsageError if there is no such device as --device names.
void check_device(const ProfileOptions&);

/// Trains what --model names. `stop` is among the callbacks.
[[nodiscard]] Outcome train_model(const ProfileOptions&, std::size_t classes, Runtime&, Loaders&, CallbackList,
                                  const StopRequest& stop);

}   // namespace drawpoint::cli
