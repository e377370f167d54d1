#include "bench/device/stage_measures.hpp"

#include <algorithm>
#include <chrono>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include <ATen/core/CachingHostAllocator.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include "pipeline/torch/device_stage.hpp"

namespace drawpoint::bench {
namespace {

constexpr std::size_t mb = 1'000'000;

class Measures {
public:
    Measures(c10::Device device, const DeviceMeasureOptions& options)
        : device_{device}, options_{options}, calls_{device.type()} {}

    std::vector<DeviceFigure> all() {
        const c10::DeviceGuard guard{device_};
        calls_cost();
        time_resolution();
        bandwidth();
        pinning();
        overlap(38'535'168);
        overlap(9'633'792);
        timing_costs();
        memory_runs_out();
        return std::move(figures_);
    }

private:
    [[nodiscard]] std::int64_t now_ns() const {
        return options_.now_ns ? options_.now_ns()
                               : std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count();
    }
    [[nodiscard]] c10::Stream stream() const { return calls_.getStream(device_); }
    void end() const { stream().synchronize(); }
    [[nodiscard]] c10::Event timed() const { return c10::Event{device_.type(), c10::EventFlag::BACKEND_DEFAULT}; }
    [[nodiscard]] std::size_t few() const { return std::max<std::size_t>(options_.repeats / 100, 3); }

    void tell(std::string name, std::string unit, std::vector<double> values) {
        std::ranges::sort(values);
        const auto at = [&values](double share) {
            return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
        };
        figures_.push_back({std::move(name), std::move(unit), at(0.5), at(0.1), at(0.9), values.size()});
        if (options_.tell)
            options_.tell(figures_.back());
    }
    /// Host time of `call`, in µs, `count` times.
    template <class Call>
    std::vector<double> host_us(std::size_t count, Call call) const {
        std::vector<double> us;
        for (std::size_t i = 0; i < count; ++i) {
            const std::int64_t begin_ns = now_ns();
            call(i);
            us.push_back(static_cast<double>(now_ns() - begin_ns) * 1e-3);
        }
        return us;
    }

    /// Gives the current stream work of about `ms`.
    void work(double ms) {
        if (options_.work)
            return options_.work(ms);
        if (!factor_.defined())
            choose_product();
        for (double done_ms = 0; done_ms < ms; done_ms += product_ms_)
            multiply();
    }
    void multiply() { at::mm_out(product_, factor_, factor_); }
    /// Takes a quarter of a millisecond or a little more, so that the queue of launches, some 1000, is not filled.
    void choose_product() {
        constexpr std::int64_t largest = 8192;
        for (std::int64_t side = 512; side <= largest && product_ms_ < 0.25; side = side * 5 / 4 / 64 * 64) {
            factor_ = at::zeros({side, side}, at::TensorOptions{}.dtype(at::kFloat).device(device_));
            product_ = at::zeros({side, side}, factor_.options());
            constexpr int products = 50;
            for (int round = 0; round < 2; ++round) {   // the first warms up
                end();
                const std::int64_t begin_ns = now_ns();
                for (int i = 0; i < products; ++i)
                    multiply();
                end();
                product_ms_ = static_cast<double>(now_ns() - begin_ns) * 1e-6 / products;
            }
        }
    }

    // What calls cost the host, while the stream has nothing to do and while it has.
    void calls_cost() {
        for (const bool is_loaded : {false, true}) {
            const std::string how = is_loaded ? ", stream at work" : ", stream idle";
            const auto load = [&] {
                end();
                if (is_loaded)
                    work(50);
            };
            const std::size_t repeats = is_loaded ? std::min<std::size_t>(options_.repeats, 300) : options_.repeats;
            std::vector<c10::Event> events;
            for (std::size_t i = 0; i < repeats; ++i)
                events.push_back(timed());
            load();
            tell("record of a timed event" + how, "us",
                 host_us(repeats, [&](std::size_t i) { events[i].record(stream()); }));
            c10::Event untimed{device_.type()};
            load();
            tell("record of an untimed event" + how, "us",
                 host_us(repeats, [&](std::size_t) { untimed.record(stream()); }));
            const c10::Stream other = calls_.getNewStream(device_, -1);
            load();
            untimed.record(stream());
            tell("wait of a stream for an event" + how, "us",
                 host_us(repeats, [&](std::size_t) { untimed.block(other); }));
            load();
            untimed.record(stream());
            if (!is_loaded)
                end();
            tell(is_loaded ? "query of an event that is not done" : "query of an event that is done", "us",
                 host_us(repeats, [&](std::size_t) { (void)untimed.query(); }));
        }
        end();
        c10::Event first = timed(), last = timed();
        first.record(stream());
        last.record(stream());
        end();
        tell("elapsed time of two events", "us",
             host_us(options_.repeats, [&](std::size_t) { (void)first.elapsedTime(last); }));
        tell("record and synchronise: width of an anchor", "us", host_us(options_.repeats, [&](std::size_t) {
                 last.record(stream());
                 last.synchronize();
             }));
    }

    /// The time between neighbouring events of a stream that has nothing else to do, and the smallest that is not 0.
    void time_resolution() {
        std::vector<c10::Event> events;
        for (std::size_t i = 0; i < 10 * options_.repeats; ++i)
            events.push_back(timed());
        for (c10::Event& event : events)
            event.record(stream());
        end();
        std::vector<double> gaps_ns;
        double smallest_ns = 0;
        for (std::size_t i = 1; i < events.size(); ++i) {
            gaps_ns.push_back(events[i - 1].elapsedTime(events[i]) * 1e6);
            if (gaps_ns.back() > 0 && (smallest_ns == 0 || gaps_ns.back() < smallest_ns))
                smallest_ns = gaps_ns.back();
        }
        tell("between neighbouring events", "ns", gaps_ns);
        tell("smallest time between events that is not 0", "ns", {smallest_ns});
    }

    /// Host memory to copy from.
    struct Source {
        std::optional<c10::DataPtr> pinned;
        std::unique_ptr<std::byte[]> pageable;
        at::Tensor bytes;
    };
    [[nodiscard]] Source source(std::size_t bytes, bool is_pinned) const {
        Source made;
        void* memory = nullptr;
        if (is_pinned) {
            made.pinned.emplace(at::getHostAllocator(device_.type())->allocate(bytes));
            memory = made.pinned->get();
        } else {
            made.pageable.reset(new std::byte[bytes]);
            memory = made.pageable.get();
        }
        std::memset(memory, 1, bytes);
        made.bytes = at::from_blob(memory, {static_cast<std::int64_t>(bytes)}, at::TensorOptions{}.dtype(at::kByte));
        return made;
    }
    [[nodiscard]] at::Tensor on_device(std::size_t bytes) const {
        return at::empty({static_cast<std::int64_t>(bytes)}, at::TensorOptions{}.dtype(at::kByte).device(device_));
    }
    [[nodiscard]] bool pins() const {
        try {
            return at::getHostAllocator(device_.type()) != nullptr;
        } catch (const c10::Error&) {
            return false;
        }
    }

    static double gb_per_s(std::size_t bytes, std::int64_t ns) {
        return ns <= 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(ns);
    }

    void bandwidth() {
        for (const bool is_pinned : {true, false}) {
            if (is_pinned && !pins())
                continue;
            for (std::size_t size = mb; size <= options_.largest_mb * mb; size *= 4) {
                const Source from = source(size, is_pinned);
                at::Tensor to = on_device(size);
                std::vector<double> rates;
                for (std::size_t i = 0; i < few(); ++i) {
                    end();
                    const std::int64_t begin_ns = now_ns();
                    to.copy_(from.bytes, true);
                    end();
                    rates.push_back(gb_per_s(size, now_ns() - begin_ns));
                }
                tell("copy of " + std::to_string(size / mb) + " MB from " + (is_pinned ? "pinned" : "pageable") +
                         " memory",
                     "GB/s", rates);
            }
        }
        if (!pins())
            return;
        const std::size_t size = std::min<std::size_t>(64, options_.largest_mb) * mb;
        const Source one = source(size, true), two = source(size, true);
        at::Tensor to_one = on_device(size), to_two = on_device(size);
        const c10::Stream copies = calls_.getNewStream(device_, -1), others = calls_.getNewStream(device_, -1);
        std::vector<double> both, beside, alone_ms, slowed_ms;
        for (std::size_t i = 0; i < few(); ++i) {
            std::int64_t begin_ns = now_ns();
            {
                const c10::StreamGuard on{copies};
                to_one.copy_(one.bytes, true);
            }
            {
                const c10::StreamGuard on{others};
                to_two.copy_(two.bytes, true);
            }
            copies.synchronize();
            others.synchronize();
            both.push_back(gb_per_s(2 * size, now_ns() - begin_ns));

            begin_ns = now_ns();
            work(20);
            end();
            alone_ms.push_back(static_cast<double>(now_ns() - begin_ns) * 1e-6);
            begin_ns = now_ns();
            work(20);
            std::int64_t copied_ns = 0;
            constexpr std::size_t many = 8;
            {
                const c10::StreamGuard on{copies};
                const std::int64_t copy_ns = now_ns();
                for (std::size_t copy = 0; copy < many; ++copy)
                    to_one.copy_(one.bytes, true);
                copies.synchronize();
                copied_ns = now_ns() - copy_ns;
            }
            end();
            slowed_ms.push_back(static_cast<double>(now_ns() - begin_ns) * 1e-6);
            beside.push_back(gb_per_s(many * size, copied_ns));
        }
        tell("copies of two streams at once", "GB/s", both);
        tell("copies beside products of matrices", "GB/s", beside);
        tell("20 ms of work alone", "ms", alone_ms);
        tell("20 ms of work beside copies", "ms", slowed_ms);
    }

    // What making memory that the device reads takes, and how fast the host writes there.
    void pinning() {
        const std::size_t size = options_.largest_mb * mb;
        const auto per_gb = [](std::vector<double> us, std::size_t bytes) {
            for (double& value : us)
                value *= 1e-3 / (static_cast<double>(bytes) * 1e-9);
            return us;
        };
        const auto write_rate = [&](void* memory) {
            std::vector<double> rates;
            for (std::size_t i = 0; i < few(); ++i) {
                const std::int64_t begin_ns = now_ns();
                std::memset(memory, static_cast<int>(i), size);
                rates.push_back(gb_per_s(size, now_ns() - begin_ns));
            }
            return rates;
        };
        if (pins()) {
            std::optional<c10::DataPtr> pinned;
            at::HostAllocator* const allocator = at::getHostAllocator(device_.type());
            allocator->empty_cache();   // what was given back before is pinned
            tell("pinning", "ms/GB",
                 per_gb(host_us(1, [&](std::size_t) { pinned.emplace(allocator->allocate(size)); }),
                        std::bit_ceil(size)));   // LibTorch rounds up
            tell("writing to pinned memory", "GB/s", write_rate(pinned->get()));
        }
        const std::unique_ptr<std::byte[]> ordinary{new std::byte[size]};
        std::memset(ordinary.get(), 1, size);
        tell("writing to ordinary memory", "GB/s", write_rate(ordinary.get()));
        // The function of CUDA's runtime library, if the process has it loaded: it pins memory that exists.
        using Register = int (*)(void*, std::size_t, unsigned);
        using Unregister = int (*)(void*);
        const auto lock = reinterpret_cast<Register>(dlsym(RTLD_DEFAULT, "cudaHostRegister"));
        const auto unlock = reinterpret_cast<Unregister>(dlsym(RTLD_DEFAULT, "cudaHostUnregister"));
        if (lock == nullptr || unlock == nullptr || device_.type() != c10::DeviceType::CUDA)
            return;
        int failed = 0;
        tell("registering memory", "ms/GB",
             per_gb(host_us(1, [&](std::size_t) { failed = lock(ordinary.get(), size, 0); }), size));
        if (failed == 0)
            unlock(ordinary.get());
    }

    // Steps of 5 ms with a copy for each: in the stream that computes, and by the stage.
    void overlap(std::size_t bytes) {
        if (bytes > options_.largest_mb * mb)
            return;
        const std::string what = std::to_string(bytes / 100'000 * 100'000 / mb) + "." +
                                 std::to_string(bytes / 100'000 % 10) + " MB a step of 5 ms, ";
        constexpr double step_ms = 5;
        const Source from = source(bytes, pins());
        work(step_ms);
        end();
        at::Tensor to = on_device(bytes);
        std::int64_t begin_ns = now_ns();
        for (std::size_t step = 0; step < options_.steps; ++step) {
            to.copy_(from.bytes, true);
            work(step_ms);
        }
        end();
        const auto per_step_ms = [&] {
            return static_cast<double>(now_ns() - begin_ns) * 1e-6 / static_cast<double>(options_.steps);
        };
        tell(what + "one stream", "ms", {per_step_ms()});
        for (const std::size_t buffers : {1u, 2u, 3u}) {
            DeviceStage stage{device_, buffers, bytes};
            const TransferPart part{static_cast<const std::byte*>(from.bytes.const_data_ptr()), bytes, 0};
            std::vector<double> stage_us;
            end();
            begin_ns = now_ns();
            std::size_t issued = 0;
            const auto issue_ahead = [&] {
                for (; issued < options_.steps && stage.policy().may_issue(); ++issued)
                    stage.issue({&part, 1});
            };
            for (std::size_t step = 0; step < options_.steps; ++step) {
                std::int64_t stage_ns = now_ns();
                while (stage.ended()) {
                }
                while (stage.policy().ahead() == 0 && !stage.policy().may_issue()) {   // the loop is ahead
                    stage_ns = now_ns();
                    while (stage.ended()) {
                    }
                }
                issue_ahead();
                stage.await_next();
                const std::size_t buffer = stage.draw();
                issue_ahead();
                const std::int64_t drawn_ns = now_ns();
                work(step_ms);
                const std::int64_t worked_ns = now_ns();
                stage.give_back(buffer);
                stage_us.push_back(static_cast<double>(drawn_ns - stage_ns + now_ns() - worked_ns) * 1e-3);
            }
            end();
            tell(what + std::to_string(buffers) + (buffers == 1 ? " buffer" : " buffers"), "ms", {per_step_ms()});
            tell(what + std::to_string(buffers) + (buffers == 1 ? " buffer" : " buffers") + ": the stage on the host",
                 "us", stage_us);
        }
    }

    // Steps with and without the events that time them, in turn.
    void timing_costs() {
        for (const double step_ms : {1.0, 5.0, 50.0}) {
            const auto steps = std::max<std::size_t>(static_cast<std::size_t>(250 / step_ms), 5);
            constexpr std::size_t events_a_step = 4, readings_a_step = 6;
            std::vector<c10::Event> events;
            for (std::size_t i = 0; i < steps * events_a_step; ++i)
                events.push_back(timed());
            const auto run = [&](bool is_timed) {
                end();
                const std::int64_t begin_ns = now_ns();
                for (std::size_t step = 0; step < steps; ++step) {
                    work(step_ms / 2);
                    for (std::size_t i = 0; is_timed && i < events_a_step; ++i)
                        events[step * events_a_step + i].record(stream());
                    work(step_ms / 2);
                    constexpr std::size_t behind = 3;
                    for (std::size_t i = 0; is_timed && step >= behind && i < readings_a_step; ++i) {
                        const c10::Event& event = events[(step - behind) * events_a_step + i % events_a_step];
                        if (event.query())
                            (void)events[(step - behind) * events_a_step].elapsedTime(event);
                    }
                }
                end();
                return static_cast<double>(now_ns() - begin_ns);
            };
            run(true);
            std::vector<double> more;
            for (std::size_t pair = 0; pair < 2 * few(); ++pair) {
                const bool first = pair % 2 == 0;
                const double one = run(first), other = run(!first);
                more.push_back(100 * ((first ? one / other : other / one) - 1));
            }
            tell("timing steps of " + std::to_string(static_cast<int>(step_ms)) + " ms", "% of wall", more);
        }
    }

    /// A buffer that no device has: the failure must say so, and leave the device usable.
    void memory_runs_out() {
        bool is_refused = false;
        try {
            const DeviceStage stage{device_, 1, std::uint64_t{1} << 46};
        } catch (const DeviceError&) {
            is_refused = true;
        }
        work(1);
        end();
        tell("a buffer of 64 TiB is refused by DeviceError, and the device goes on", "1: yes",
             {is_refused ? 1.0 : 0.0});
    }

    c10::Device device_;
    const DeviceMeasureOptions& options_;
    c10::impl::VirtualGuardImpl calls_;
    std::vector<DeviceFigure> figures_;
    at::Tensor factor_, product_;
    double product_ms_ = 0;
};

}   // namespace

std::vector<DeviceFigure> measure_device(c10::Device device, const DeviceMeasureOptions& options) {
    return Measures{device, options}.all();
}

}   // namespace drawpoint::bench
