#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "torch/fake_accelerator/fake_accelerator.hpp"

namespace drawpoint::fake_accelerator {

/// The device's streams in virtual time, and the effects of their work.
class Timeline {
public:
    Settings settings;
    Counters counters;

    void reset(const Settings& to);
    /// A call of the device by the host. Throws c10::AcceleratorError if calls fail.
    void call(std::uint64_t Counters::* kind, std::int64_t ns);
    void call(std::uint64_t Counters::* kind) { call(kind, settings.call_ns); }
    [[nodiscard]] std::int64_t now_ns();
    void advance_to(std::int64_t ns);
    /// The host waits for the device, until then.
    void wait_until(std::int64_t ns);
    /// Runs the effects that are due at `ns` or before.
    void settle(std::int64_t ns);

    /// What does it: the processors, or the engine of copies in one direction.
    enum class Work : std::uint8_t { kernel, to_device, to_host };
    /// Enqueues work of a stream. Returns begin and end.
    std::pair<std::int64_t, std::int64_t> enqueue(std::int64_t stream, std::int64_t ns, Work);
    template <class Effect>
    void at(std::int64_t ns, Effect effect) {
        if (settings.effects)
            effects_.emplace(std::pair{ns, effects_made_++}, std::move(effect));
    }
    /// When an event that is recorded now happens, and when a stream goes on.
    [[nodiscard]] std::int64_t tail(std::int64_t stream);
    void hold(std::int64_t stream, std::int64_t until_ns);
    [[nodiscard]] std::int64_t end() const noexcept;

    std::int64_t new_stream() { return settings.one_stream ? 0 : ++streams_made_; }

private:
    struct Stream {
        /// With room for some work, so that a busier moment of a steady loop allocates nothing.
        Stream() { ends.reserve(64); }
        std::int64_t tail = 0;
        std::vector<std::int64_t> ends;   // of work that is enqueued
    };
    std::int64_t now_ = 0, streams_made_ = 0;
    std::array<std::int64_t, 3> engine_free_{};   // of copies, by Work
    std::uint64_t calls_ = 0, effects_made_ = 0;
    std::map<std::int64_t, Stream> streams_;
    std::map<std::pair<std::int64_t, std::uint64_t>, std::function<void()>> effects_;   // by time, then order
};

[[nodiscard]] Timeline& timeline() noexcept;
/// The current stream of the current device.
[[nodiscard]] std::int64_t current_stream() noexcept;
/// Tells LibTorch of the host allocator, or that there is none.
void register_host_allocator(bool is_there);
/// Whether it is memory of the host allocator.
[[nodiscard]] bool is_pinned(const void* data);

}   // namespace drawpoint::fake_accelerator
