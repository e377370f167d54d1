// Measures what recording costs: a stamp, an event, a sample, a step, a region; the writer thread; and all of it in a
// run over JPEG files.

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include <sys/resource.h>
#include <unistd.h>

#include <benchmark/benchmark.h>

#include <drawpoint/instrumentation/recorder/loop_track.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/recorder/region.hpp>
#include <drawpoint/loop/fit.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>

#include "photos.hpp"

namespace {

using namespace drawpoint;
using namespace std::chrono_literals;

constexpr std::size_t stages = 4;
constexpr int lap_samples = 10'000, lap_steps = 2'000;   // few enough to fit into a ring of `ring_records`
constexpr std::uint32_t ring_records = 1u << 16;

/// A recorder, with or without a file; the destructor removes the file.
class Recording {
public:
    explicit Recording(bool with_file) {
        const RecorderOptions options{.ring_records = ring_records};
        if (with_file) {
            file_ =
                std::filesystem::temp_directory_path() / ("drawpoint-record-" + std::to_string(getpid()) + ".pftrace");
            recorder_ = std::make_unique<Recorder>(*file_, options);
        } else {
            recorder_ = std::make_unique<Recorder>(options);
        }
    }
    ~Recording() {
        recorder_.reset();
        if (file_)
            std::filesystem::remove(*file_);
    }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

    [[nodiscard]] Recorder& operator*() const noexcept { return *recorder_; }
    [[nodiscard]] Recorder* operator->() const noexcept { return recorder_.get(); }

    /// Waits until the writer has taken everything.
    void settle() const {
        for (std::uint64_t before = recorder_->state().events + 1, now; before != (now = recorder_->state().events);
             before = now)
            std::this_thread::sleep_for(100ms);
    }

private:
    std::optional<std::filesystem::path> file_;
    std::unique_ptr<Recorder> recorder_;
};

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

template <class C>
void clock_reading(benchmark::State& state, const C& clock) {
    for (auto _ : state)
        benchmark::DoNotOptimize(clock.now_ns());
}

/// Records one sample as a worker does: five stamps and a push.
void record_sample(Recorder& recorder, WorkerTrack& track, SampleRecord& record) {
    std::int64_t now = recorder.now_ns();
    record.row.begin_ns = now;
    for (std::size_t s = 0; s < stages; ++s) {
        const std::int64_t next = recorder.now_ns();
        record.stages[s] = {now, next - now};
        now = next;
    }
    track.push(record);
}

/// Measures the time of one piece, where `lap()` records `pieces` of them. The writer empties the ring between laps,
/// which is not timed.
template <class Lap>
void run_laps(benchmark::State& state, const Recording& recording, int pieces, Lap lap) {
    for (int i = 0; i < 4; ++i) {   // the ring's pages are there once it has been filled
        lap();
        recording.settle();
    }
    const RecordingState before = recording->state();
    for (auto _ : state) {
        const auto begin = std::chrono::steady_clock::now();
        lap();
        state.SetIterationTime(seconds_since(begin) / pieces);
        recording.settle();
    }
    const RecordingState after = recording->state();
    if (after.dropped != 0)
        state.SkipWithError("the ring was full");
    const double count = static_cast<double>(pieces) * static_cast<double>(state.iterations());
    state.counters["events"] = static_cast<double>(after.events - before.events) / count;
    state.counters["writer_ns"] = (after.writer_cpu_s - before.writer_cpu_s) * 1e9 / count;
}

/// `per_event`: reports the time of one of the sample's five events, else of the whole sample.
void sample(benchmark::State& state, bool with_file, bool per_event) {
    const Recording recording{with_file};
    recording->add_pipeline({"bench", {"read", "decode", "crop", "normalize"}, 64, 1, 2});
    WorkerTrack track = recording->add_worker();
    SampleRecord record;
    record.stage_count = stages;
    run_laps(state, recording, lap_samples * (per_event ? static_cast<int>(stages) + 1 : 1), [&] {
        for (int i = 0; i < lap_samples; ++i) {
            record.row.index = static_cast<std::uint64_t>(i);
            record.row.batch = static_cast<std::uint32_t>(i / 64);
            record_sample(*recording, track, record);
        }
    });
}

/// Records a step of the training loop as `fit` does, without its work.
void step(benchmark::State& state, bool with_file) {
    constexpr std::array spans{Span::handoff,  Span::forward,  Span::loss,     Span::other,
                               Span::backward, Span::opt_step, Span::zero_grad};
    const Recording recording{with_file};
    LoopTrack loop{*recording};
    loop.begin_pass(PassKind::train, 0);
    run_laps(state, recording, lap_steps, [&] {
        for (int i = 0; i < lap_steps; ++i) {
            loop.begin_step(Phase::train, 0, static_cast<std::uint32_t>(i));
            for (const Span span : spans) {
                loop.mark(span);
                if (span == Span::handoff)
                    loop.end_draw(64);
            }
            loop.end_step(StepStatus::complete, 0.5);
            loop.mark(Span::between);
        }
    });
    loop.end_pass();
}

/// Records a region's begin and end.
void region(benchmark::State& state, bool with_file) {
    const Recording recording{with_file};
    const std::uint32_t name = recording->add_name("region");
    run_laps(state, recording, lap_samples, [&] {
        for (int i = 0; i < lap_samples; ++i)
            const Region here{*recording, name};
    });
}

/// A model that does nothing, so that all CPU time of the run is spent in the loader and the recorder.
struct NoModel {
    void begin_phase(bool) {}
    void forward(Batch&) {}
    void loss(Batch&) {}
    void backward() {}
    void opt_step() {}
    void zero_grad() {}
    double loss_value() { return 0; }
};

double cpu_seconds() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    const auto s = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return s(used.ru_utime) + s(used.ru_stime);
}

/// share_of_cpu = (events x ns per event + the writer thread's CPU time) / CPU time of the run.
void share_of_a_jpeg_run(benchmark::State& state) {
    const char* given = std::getenv("DRAWPOINT_BENCH_DATA");
    std::optional<bench::TemporaryPhotos> generated;
    if (given == nullptr)
        generated.emplace(640);
    const ImageFolder photos{given != nullptr ? std::filesystem::path{given} : generated->folder()};
    const Recording recording{true};
    Runtime runtime{{.max_threads = 2}, *recording};
    const ImageRecipe recipe =
        photos | decode_jpeg | RandomResizedCrop{224, 224} | RandomHorizontalFlip{} | Normalize::imagenet();
    const RandomSampler order{photos.size(), 7};
    DataLoader loader{runtime, recipe, order, {.batch_size = 64, .num_workers = 2, .prefetch_depth = 4}};
    NoModel model;
    for (auto _ : state) {
        const RecordingState before = recording->state();
        const double begin = cpu_seconds();
        run(runtime, fit(model, loader, FitOptions{.epochs = 3}, *recording));
        static_cast<void>(recording->ledger());   // waits until the writer has taken everything
        const double cpu = cpu_seconds() - begin;
        const RecordingState after = recording->state();
        const auto events = static_cast<double>(after.events - before.events);
        const double writer = after.writer_cpu_s - before.writer_cpu_s;
        state.counters["share_of_cpu"] = (events * after.ns_per_event * 1e-9 + writer) / cpu;
        state.counters["share_of_cpu_writer"] = writer / cpu;
        state.counters["events"] = events;
        state.counters["ns_per_event"] = after.ns_per_event;
        state.counters["writer_ns_per_event"] = writer * 1e9 / events;
        state.counters["cpu_s"] = cpu;
        state.counters["dropped"] = static_cast<double>(after.dropped);
    }
}

}   // namespace

BENCHMARK_CAPTURE(clock_reading, recorder, AnyClock{});
BENCHMARK_CAPTURE(clock_reading, steady, SteadyClock{});
#define DRAWPOINT_LAPS UseManualTime()->Iterations(4)->Repetitions(7)->ReportAggregatesOnly()
BENCHMARK_CAPTURE(sample, one_event, false, true)->DRAWPOINT_LAPS;
BENCHMARK_CAPTURE(sample, of_4_stages, false, false)->DRAWPOINT_LAPS;
BENCHMARK_CAPTURE(sample, of_4_stages_into_a_file, true, false)->DRAWPOINT_LAPS;
BENCHMARK_CAPTURE(step, of_8_pieces, false)->DRAWPOINT_LAPS;
BENCHMARK_CAPTURE(step, of_8_pieces_into_a_file, true)->DRAWPOINT_LAPS;
BENCHMARK_CAPTURE(region, begin_and_end, false)->DRAWPOINT_LAPS;
BENCHMARK_CAPTURE(region, begin_and_end_into_a_file, true)->DRAWPOINT_LAPS;
BENCHMARK(share_of_a_jpeg_run)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK_MAIN();
