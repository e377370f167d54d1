#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/pipeline/loader/core/collate.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>
#include <drawpoint/pipeline/stages/stage.hpp>

namespace drawpoint {

/// Faults for experiments. `InjectedSource` makes the first five and `InjectedCollate` makes collate; the rest concern
/// the loop and the recorder.
enum class InjectionKind : std::uint8_t {
    read_latency,
    read_bandwidth,
    decode,
    transform,
    straggler,
    collate,
    compute,
    compute_jitter,
    drop_events,
};

/// One fault: its kind and those of the following numbers that it uses.
struct Injection {
    InjectionKind kind{};
    double factor = 1;                   ///< decode, transform, collate: multiple of the measured time, ≥ 1
    double share = 0;                    ///< straggler, compute_jitter, drop_events: 0 … 1
    std::chrono::nanoseconds delay{0};   ///< read_latency, straggler, compute; ≥ 0
    double bytes_per_s = 0;              ///< read_bandwidth, shared by all workers; > 0
    bool operator==(const Injection&) const = default;
};

/// Whether `InjectedSource` makes this kind of fault.
[[nodiscard]] constexpr bool is_of_source(InjectionKind kind) noexcept { return kind <= InjectionKind::straggler; }

/// The name on the command line, e.g. "read-latency".
[[nodiscard]] std::string_view to_string(InjectionKind) noexcept;

/// Parses KIND=VALUE: read-latency=5ms, read-bandwidth=20MB/s, decode=x3, transform=x3, straggler=1%:30ms, collate=x5,
/// compute=20ms, compute-jitter=50%, drop-events=1%. Durations in ns, us, ms or s. Throws std::invalid_argument that
/// quotes the text and says what is wrong with it.
[[nodiscard]] Injection parse_injection(std::string_view text);

/// How an injected fault lets time pass; tests replace these.
struct InjectedWaits {
    std::function<void(std::chrono::nanoseconds)> sleep;   ///< waiting for storage; empty: sleep the thread
    std::function<void(std::chrono::nanoseconds)> spin;    ///< computing; empty: keep the core busy
};

/// A source with injected faults. Each fault lengthens the stage it concerns, also in the sample's timestamps: later
/// stages move on, so stages still tile the sample.
/// - read-*: the first stage, or the source's reads() wherever they run; location() then says nullopt, so threads read.
/// - decode: the stage whose name begins with "decode" takes `factor` times its measured time.
/// - straggler: of samples chosen by (seed, index), the decode stage, or the last one if nothing decodes, takes `delay`
///   longer.
/// - transform: a stage of its own at the end, which takes (factor - 1) times the measured time of the decode stage, or
///   of the last one if nothing decodes.
/// Thread-safe like any source.
class InjectedSource final : public SampleSource {
public:
    /// Ignores faults that are not the source's. Throws std::invalid_argument naming a kind given twice, for decode
    /// without such a stage, and for too many stages.
    InjectedSource(std::shared_ptr<const SampleSource> source, const std::vector<Injection>& injections,
                   std::uint64_t seed = 0, InjectedWaits waits = {});
    InjectedSource(const InjectedSource&) = delete;
    InjectedSource& operator=(const InjectedSource&) = delete;

    [[nodiscard]] std::size_t size() const noexcept override { return source_->size(); }
    [[nodiscard]] SampleLayout layout() const noexcept override { return source_->layout(); }
    [[nodiscard]] std::vector<std::string> stages() const override;
    [[nodiscard]] std::string path(std::uint64_t index) const override { return source_->path(index); }
    [[nodiscard]] std::unique_ptr<WorkerScratch> make_scratch() const override { return source_->make_scratch(); }
    void fill(SampleTask&, WorkerScratch&) const override;
    [[nodiscard]] const SampleReads* reads() const noexcept override;
    [[nodiscard]] std::string random_part() const override { return source_->random_part(); }
    [[nodiscard]] const SampleCache* cache() const noexcept override { return source_->cache(); }

    /// Whether sample `index` is a straggler.
    [[nodiscard]] bool is_straggler(std::uint64_t index) const noexcept;

private:
    /// The source's reads, with latency and bandwidth added.
    class Reads final : public SampleReads {
    public:
        explicit Reads(const InjectedSource& to) noexcept : to_{&to} {}
        void read(std::uint64_t index, std::vector<std::byte>& contents) const override;
        [[nodiscard]] std::optional<FileRange> location(std::uint64_t) const noexcept override { return std::nullopt; }
        [[nodiscard]] bool wants(std::uint64_t index) const noexcept override;

    private:
        const InjectedSource* to_;
    };

    void fill_stamped(SampleTask&, WorkerScratch&) const;
    /// Waits for the transfer of `bytes` at the limited bandwidth, in one queue with all other reads.
    void wait_for_bandwidth(std::uint64_t bytes, std::int64_t now_ns) const;

    std::shared_ptr<const SampleSource> source_;
    std::uint64_t seed_;
    InjectedWaits waits_;
    std::optional<Injection> latency_, bandwidth_, decode_, transform_, straggler_;
    std::size_t image_stage_ = 0;
    Reads reads_{*this};
    mutable std::atomic<std::int64_t> storage_free_ns_;   // when the last queued read will be finished
};

/// `source` with injected faults; the source is copied, moved in, or shared if it is a shared_ptr.
template <class Source>
    requires std::derived_from<detail::shared_t<Source>, SampleSource>
[[nodiscard]] std::shared_ptr<const InjectedSource> inject(Source&& source, const std::vector<Injection>& injections,
                                                           std::uint64_t seed = 0, InjectedWaits waits = {}) {
    return std::make_shared<const InjectedSource>(detail::share(std::forward<Source>(source)), injections, seed,
                                                  std::move(waits));
}

/// A collate function that takes `factor` times its measured time; exceptions are passed on without delay. Thread-safe
/// like any collate function.
class InjectedCollate final : public Collate {
public:
    /// Ignores kinds other than collate. Throws std::invalid_argument if it is given twice. `waits.sleep` is not used.
    InjectedCollate(std::shared_ptr<const Collate> collate, const std::vector<Injection>& injections,
                    InjectedWaits waits = {}, const AnyClock& clock = AnyClock{});

    [[nodiscard]] std::string name() const override { return collate_->name(); }
    void collate(const FinishedSamples&, CollatedBatch&) const override;

private:
    std::shared_ptr<const Collate> collate_;
    InjectedWaits waits_;
    AnyClock clock_;
    double factor_ = 1;
};

/// `collate` with the fault added; copied, moved in, or shared if it is a shared_ptr.
template <class Function>
    requires std::derived_from<detail::shared_t<Function>, Collate>
[[nodiscard]] std::shared_ptr<const InjectedCollate>
inject(Function&& collate, const std::vector<Injection>& injections, InjectedWaits waits = {},
       const AnyClock& clock = AnyClock{}) {
    return std::make_shared<const InjectedCollate>(detail::share(std::forward<Function>(collate)), injections,
                                                   std::move(waits), clock);
}

}   // namespace drawpoint
