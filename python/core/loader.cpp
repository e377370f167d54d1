#include "python/core/loader.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include <unistd.h>

#include <nanobind/stl/string.h>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/ledger/order_rule.hpp>
#include <drawpoint/instrumentation/recorder/loop_track.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/instrumentation/report/text.hpp>
#include <drawpoint/pipeline/errors.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include "python/core/arrays.hpp"
#include "python/core/sources.hpp"

namespace drawpoint::python {
namespace nb = nanobind;
namespace {

constexpr std::chrono::milliseconds between_signals{50};

std::unique_ptr<Sampler> base_sampler(std::size_t size, bool shuffle, std::uint64_t seed) {
    if (shuffle)
        return std::make_unique<RandomSampler>(size, seed);
    return std::make_unique<SequentialSampler>(size);
}

/// A DataLoader with all that it needs, drawn from with the interpreter's lock held, which is released while it waits.
/// One thread at a time. In a forked child it can only be destroyed.
class Loader {
public:
    struct Options {
        LoaderOptions loader;
        bool shuffle = false;
        std::size_t rank = 0, world_size = 1;
        std::string record, name;
    };
    Loader(const Source& source, const Options& options, nb::object convert)
        : source_{source.samples},
          order_{base_sampler(source_->size(), options.shuffle, options.loader.seed)},
          recorder_{options.record.empty() ? std::make_unique<Recorder>() : std::make_unique<Recorder>(options.record)},
          convert_{std::move(convert)},
          records_{!options.record.empty()} {
        if (options.world_size != 1 || options.rank != 0)
            share_ = std::make_unique<DistributedSampler>(*order_, options.rank, options.world_size,
                                                          options.loader.drop_last);
        runtime_ = std::make_unique<Runtime>(RuntimeOptions{.record = records_}, *recorder_);
        const Sampler& sampler = share_ ? *share_ : *order_;
        loader_ = std::make_unique<DataLoader>(*runtime_, *source_, sampler, options.loader, options.name);
        batches_ = loader_->batches_per_epoch();
        if (records_)
            begin_recording();
    }
    Loader(const Loader&) = delete;
    Loader& operator=(const Loader&) = delete;
    ~Loader() {
        if (is_forked()) {   // whose threads are missing
            leave_all();
            return;
        }
        const nb::gil_scoped_release joins;   // workers, which may need it
        end();
    }

    void begin(std::size_t epoch, std::size_t first_batch, bool next_epoch) {
        check_open();
        const Use use{*this};
        pass_.reset();
        end_pass();
        {
            const nb::gil_scoped_release computing;
            pass_.emplace(loader_->epoch(epoch, {.next_epoch = next_epoch, .first_batch = first_batch}));
        }
        epoch_ = static_cast<std::uint32_t>(epoch);
        step_ = static_cast<std::uint32_t>(first_batch);
        if (track_) {
            track_->mark(Span::between);
            track_->begin_pass(PassKind::train, epoch_);
            in_pass_ = true;
        }
    }

    /// The next batch as a tuple of arrays; None at the end. Waits in slices, so that signals are handled.
    nb::object next() {
        const Use use{*this};
        if (!begin_draw())
            return nb::none();
        for (;;) {
            if (auto batch = pass_->try_next())
                return converted(std::move(*batch));
            if (wait(between_signals))
                return settled();
            if (PyErr_CheckSignals() != 0) {
                leave_draw();
                throw nb::python_error();
            }
        }
    }
    /// The same, but NotImplemented where it would wait: then the descriptor becomes readable once it need not.
    nb::object next_if_ready() {
        const Use use{*this};
        if (!begin_draw())
            return nb::none();
        if (auto batch = pass_->try_next())
            return converted(std::move(*batch));
        if (wait(std::chrono::milliseconds{0}))
            return settled();
        return nb::borrow(Py_NotImplemented);
    }
    /// A draw that would wait is given up: what the program does next is no waiting.
    void leave_draw() {
        if (!track_ || !std::exchange(draws_, false))
            return;
        track_->mark(Span::starved);
        track_->end_of_data();
        track_->mark(Span::between);
    }
    /// Batches of the pass that are drawn, those before its first one and failed ones included.
    [[nodiscard]] std::size_t drawn() const noexcept { return pass_ ? pass_->drawn() : batches_; }
    [[nodiscard]] int descriptor() {
        check_open();
        if (!pass_)
            throw nb::value_error("drawpoint: no pass has begun");
        return pass_->ready_descriptor();
    }

    [[nodiscard]] std::size_t batches() const noexcept { return batches_; }
    [[nodiscard]] std::size_t samples() const noexcept { return share_ ? share_->size() : order_->size(); }
    [[nodiscard]] std::size_t alive() const {
        const std::scoped_lock lock{leases_->mutex};
        return leases_->alive;
    }
    [[nodiscard]] std::size_t replaced() const {
        const std::scoped_lock lock{leases_->mutex};
        return leases_->replaced;
    }
    [[nodiscard]] std::string report() {
        if (!records_)
            throw nb::value_error("drawpoint: report() needs DataLoader(record=...)");
        check_process();
        const nb::gil_scoped_release computing;
        return to_text(summarize(recorder_->ledger()));
    }
    /// Ends workers and the recording. Batches stay valid. Idempotent.
    void close() {
        check_process();
        const Use use{*this};
        const nb::gil_scoped_release joins;
        end();
    }

private:
    /// While a thread uses the loader, which may release the interpreter's lock, no other one may, nor a signal's
    /// handler.
    class Use {
    public:
        explicit Use(Loader& loader) : loader_{&loader} {
            if (std::exchange(loader_->is_used_, true))
                throw std::runtime_error{"drawpoint: the loader is in use by another thread, or this one"};
        }
        ~Use() { loader_->is_used_ = false; }
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;

    private:
        Loader* loader_;
    };

    /// Whether the draw need not wait any more. Without the interpreter's lock.
    [[nodiscard]] bool wait(std::chrono::nanoseconds most) {
        const nb::gil_scoped_release waiting;
        return pass_->wait_for(most);
    }
    [[nodiscard]] bool is_forked() const noexcept { return ::getpid() != process_; }
    void check_process() const {
        if (is_forked())
            throw std::runtime_error{"drawpoint: this loader belongs to process " + std::to_string(process_) +
                                     ": a forked process has none of its threads, so make a loader there"};
    }
    void check_open() const {
        check_process();
        if (!loader_)
            throw std::runtime_error{"drawpoint: the loader is closed"};
    }
    void leave_all() noexcept {
        if (pass_)
            new DataLoader::Pass{std::move(*pass_)};
        (void)loader_.release();
        (void)track_.release();
        (void)runtime_.release();
        (void)recorder_.release();
    }
    void begin_recording() {
        recorder_->set_fact(facts::process_id, std::to_string(process_));
        recorder_->set_fact(facts::process_name, "python");
        recorder_->set_fact(facts::loop_tid, std::to_string(::gettid()));
        recorder_->set_fact(facts::clock, recorder_->clock().name());
        const auto unix_ns = std::chrono::nanoseconds{std::chrono::system_clock::now().time_since_epoch()};
        recorder_->set_fact(facts::unix_offset_ns, std::to_string(unix_ns.count() - recorder_->now_ns()));
        track_ = std::make_unique<LoopTrack>(*recorder_);
        track_->begin_pass(PassKind::fit, 0);
    }

    /// What the program did since the batch before belongs to its step. False: the pass is over.
    [[nodiscard]] bool begin_draw() {
        check_open();
        if (!pass_)
            return false;
        if (track_ && !draws_) {
            end_step();
            track_->begin_step(Phase::train, epoch_, step_);
            draws_ = true;
        }
        Lease::leave_room(*leases_, loader_->options().prefetch_depth + 1);
        return true;
    }
    void end_step() {
        if (std::exchange(in_step_, false)) {
            track_->mark(Span::forward);
            track_->end_step(StepStatus::complete, std::nullopt);
            track_->mark(Span::between);
        }
    }
    void end_pass() {
        if (!track_ || !in_pass_)
            return;
        leave_draw();
        end_step();
        track_->end_pass();
        in_pass_ = false;
    }
    void end() {
        if (!loader_)
            return;
        end_pass();
        pass_.reset();
        loader_.reset();
        if (track_) {
            track_->mark(Span::between);
            track_->end_pass();
            track_.reset();
        }
        runtime_.reset();
        recorder_->finish();
    }

    /// A draw that need not wait: a batch, its error, or the end.
    nb::object settled() {
        std::optional<Batch> batch;
        try {
            batch = pass_->next_blocking();
        } catch (...) {
            if (track_ && std::exchange(draws_, false)) {
                track_->mark(Span::starved);
                track_->end_step(StepStatus::failed, std::nullopt);
                track_->mark(Span::between);
                ++step_;
            }
            throw;
        }
        if (batch)
            return converted(std::move(*batch));
        end_pass();
        pass_.reset();
        return nb::none();
    }

    nb::object converted(Batch batch) {
        if (track_) {
            track_->mark_until(Span::starved, batch.draw_stamps().offered_ns);
            track_->mark_until(Span::handoff, batch.draw_stamps().taken_ns);
            track_->end_draw(static_cast<std::uint32_t>(batch.size()), static_cast<std::uint32_t>(batch.number()));
            draws_ = false;
            in_step_ = true;
            ++step_;
        }
        const SampleLayout& layout = batch.layout();
        const auto size = static_cast<std::int64_t>(batch.size());
        void* const data = batch.data().data();
        void* const targets = batch.targets().data();
        const LeaseRef lease{new Lease{leases_, std::move(batch)}};
        Array images{.lease = lease, .data = data, .type = layout.type, .rank = std::size_t{layout.rank} + 1};
        images.shape[0] = size;
        std::copy_n(layout.shape.begin(), layout.rank, images.shape.begin() + 1);
        Array labels{.lease = lease, .data = targets, .type = ScalarType::int64};
        labels.shape[0] = size;
        return nb::make_tuple(converted(std::move(images)), converted(std::move(labels)));
    }
    nb::object converted(Array array) {
        if (convert_.is_none())
            return nb::cast(std::move(array));
        return convert_(to_capsule(array, false));   // which every torch takes
    }

    const pid_t process_ = ::getpid();
    std::shared_ptr<const SampleSource> source_;
    std::unique_ptr<Sampler> order_;
    std::unique_ptr<DistributedSampler> share_;
    std::unique_ptr<Recorder> recorder_;
    std::unique_ptr<Runtime> runtime_;
    std::unique_ptr<LoopTrack> track_;
    std::unique_ptr<DataLoader> loader_;
    std::optional<DataLoader::Pass> pass_;
    std::shared_ptr<Leases> leases_ = std::make_shared<Leases>();
    nb::object convert_;   // from a capsule to an array of the user's library; None: Array
    const bool records_;
    std::size_t batches_ = 0;
    std::uint32_t epoch_ = 0, step_ = 0;
    bool in_pass_ = false, in_step_ = false, draws_ = false, is_used_ = false;
};

/// A text with the name of a file, which may be no UTF-8.
nb::object file_text(const std::string& text) {
    return nb::steal(PyUnicode_DecodeFSDefaultAndSize(text.data(), static_cast<Py_ssize_t>(text.size())));
}

/// At most so many batches may overtake one; negative: any number.
OrderRule order_of(std::int64_t max_overtakes) {
    if (max_overtakes < 0)
        return OrderRule::out_of_order();
    return OrderRule::bounded(static_cast<std::uint32_t>(std::min<std::int64_t>(max_overtakes, OrderRule::any - 1)));
}

}   // namespace

void add_loader(nb::module_& module) {
    static nb::handle sample_error;   // lives as long as the module
    sample_error = module.attr("__dict__")["SampleError"] = nb::steal(PyErr_NewExceptionWithDoc(
        "drawpoint.SampleError", "A sample that could not be made: `.index`, `.path`, `.stage`.", PyExc_RuntimeError,
        nullptr));
    nb::register_exception_translator(
        [](const std::exception_ptr& thrown, void*) {
            try {
                std::rethrow_exception(thrown);
            } catch (const SampleError& error) {
                nb::object made = sample_error(file_text(error.what()));
                made.attr("index") = error.index();
                made.attr("path") = file_text(error.path());
                made.attr("stage") = error.stage();
                PyErr_SetObject(sample_error.ptr(), made.ptr());
            } catch (const std::system_error& error) {
                PyErr_SetString(PyExc_OSError, error.what());
            }
        },
        nullptr);
    nb::class_<Loader>(module, "Loader")
        .def(
            "__init__",
            [](Loader* made, const Source& source, std::size_t batch_size, bool shuffle, std::size_t num_workers,
               std::size_t prefetch_depth, std::uint64_t seed, std::int64_t max_overtakes, bool drop_last,
               std::size_t read_concurrency, std::uint64_t memory_budget, std::size_t rank, std::size_t world_size,
               const std::string& record, const std::string& name, nb::object convert) {
                new (made) Loader{source,
                                  {.loader = {.batch_size = batch_size,
                                              .num_workers = num_workers,
                                              .prefetch_depth = prefetch_depth,
                                              .seed = seed,
                                              .drop_last = drop_last,
                                              .order = order_of(max_overtakes),
                                              .read_concurrency = read_concurrency,
                                              .memory_budget = memory_budget},
                                   .shuffle = shuffle,
                                   .rank = rank,
                                   .world_size = world_size,
                                   .record = record,
                                   .name = name},
                                  std::move(convert)};
            },
            nb::arg("source"), nb::kw_only(), nb::arg("batch_size"), nb::arg("shuffle"), nb::arg("num_workers"),
            nb::arg("prefetch_depth"), nb::arg("seed"), nb::arg("max_overtakes"), nb::arg("drop_last"),
            nb::arg("read_concurrency"), nb::arg("memory_budget"), nb::arg("rank"), nb::arg("world_size"),
            nb::arg("record"), nb::arg("name"), nb::arg("convert").none())
        .def("begin", &Loader::begin, nb::arg("epoch"), nb::arg("first_batch"), nb::arg("next_epoch"))
        .def("next", &Loader::next)
        .def("next_if_ready", &Loader::next_if_ready)
        .def("leave_draw", &Loader::leave_draw)
        .def("descriptor", &Loader::descriptor)
        .def("report", &Loader::report)
        .def("close", &Loader::close)
        .def_prop_ro("batches", &Loader::batches)
        .def_prop_ro("samples", &Loader::samples)
        .def_prop_ro("drawn", &Loader::drawn)
        .def_prop_ro("alive", &Loader::alive)
        .def_prop_ro("replaced", &Loader::replaced);
}

}   // namespace drawpoint::python
