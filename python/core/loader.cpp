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

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <drawpoint/instrumentation/ledger/order_rule.hpp>
#include <drawpoint/pipeline/errors.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include "python/core/arrays.hpp"
#include "python/core/recording.hpp"
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
        std::shared_ptr<Recording> recording;   // null: none
        bool owns_recording = false;            // which ends with the loader
        std::string name;
    };
    Loader(const Source& source, const Options& options, nb::object convert)
        : source_{source.samples},
          order_{base_sampler(source_->size(), options.shuffle, options.loader.seed)},
          recording_{options.recording},
          unrecorded_{recording_ ? nullptr : std::make_unique<Recorder>()},
          steps_{recording_, Phase::train},
          convert_{std::move(convert)},
          owns_recording_{options.owns_recording} {
        if (options.world_size != 1 || options.rank != 0)
            share_ = std::make_unique<DistributedSampler>(*order_, options.rank, options.world_size,
                                                          options.loader.drop_last);
        if (recording_)
            (void)recording_->track();   // which says if it is closed
        Recorder& recorder = recording_ ? recording_->recorder() : *unrecorded_;
        runtime_ = std::make_unique<Runtime>(RuntimeOptions{.record = recording_ != nullptr}, recorder);
        const Sampler& sampler = share_ ? *share_ : *order_;
        loader_ = std::make_unique<DataLoader>(*runtime_, *source_, sampler, options.loader, options.name);
        batches_ = loader_->batches_per_epoch();
    }
    Loader(const Loader&) = delete;
    Loader& operator=(const Loader&) = delete;
    ~Loader() {
        if (is_forked()) {   // whose threads are missing
            leave_all();
            return;
        }
        end();
    }

    void begin(std::size_t epoch, std::size_t first_batch, bool next_epoch) {
        check_open();
        const Use use{*this};
        pass_.reset();
        steps_.end_pass();
        {
            const nb::gil_scoped_release computing;
            pass_.emplace(loader_->epoch(epoch, {.next_epoch = next_epoch, .first_batch = first_batch}));
        }
        steps_.begin_pass(static_cast<std::uint32_t>(epoch), static_cast<std::uint32_t>(first_batch));
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
                steps_.leave_draw();
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
    void leave_draw() { steps_.leave_draw(); }
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
        if (!recording_)
            throw nb::value_error("drawpoint: report() needs DataLoader(record=...)");
        check_process();
        return recording_->report();
    }
    /// Ends workers and the recording. Batches stay valid. Idempotent.
    void close() {
        check_process();
        const Use use{*this};
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
    [[nodiscard]] bool is_forked() const noexcept { return fork_.is_forked(); }
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
        (void)runtime_.release();
        (void)unrecorded_.release();
    }
    /// What the program did since the batch before belongs to its step. False: the pass is over.
    [[nodiscard]] bool begin_draw() {
        check_open();
        if (!pass_)
            return false;
        steps_.begin_draw();
        Lease::leave_room(*leases_, loader_->options().prefetch_depth + 1);
        return true;
    }
    void end() {
        if (!loader_)
            return;
        steps_.end_pass();
        {
            const nb::gil_scoped_release joins;   // workers, which may need it
            pass_.reset();
            loader_.reset();
            runtime_.reset();
        }
        if (owns_recording_)
            recording_->close();
    }

    /// A draw that need not wait: a batch, its error, or the end.
    nb::object settled() {
        std::optional<Batch> batch;
        try {
            batch = pass_->next_blocking();
        } catch (...) {
            steps_.fail_draw();
            throw;
        }
        if (batch)
            return converted(std::move(*batch));
        steps_.end_pass();
        pass_.reset();
        return nb::none();
    }

    nb::object converted(Batch batch) {
        if (steps_.draws()) {
            LoopTrack& track = steps_.track();
            track.mark_until(Span::starved, batch.draw_stamps().offered_ns);
            track.mark_until(Span::handoff, batch.draw_stamps().taken_ns);
            steps_.end_draw(static_cast<std::uint32_t>(batch.size()), static_cast<std::uint32_t>(batch.number()));
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

    const ForkCheck fork_;
    const pid_t process_ = ::getpid();
    std::shared_ptr<const SampleSource> source_;
    std::unique_ptr<Sampler> order_;
    std::unique_ptr<DistributedSampler> share_;
    std::shared_ptr<Recording> recording_;   // null: nothing is recorded
    std::unique_ptr<Recorder> unrecorded_;   // then, since a loader needs one
    LoopSteps steps_;
    std::unique_ptr<Runtime> runtime_;
    std::unique_ptr<DataLoader> loader_;
    std::optional<DataLoader::Pass> pass_;
    std::shared_ptr<Leases> leases_ = std::make_shared<Leases>();
    nb::object convert_;   // from a capsule to an array of the user's library; None: Array
    const bool owns_recording_;
    std::size_t batches_ = 0;
    bool is_used_ = false;
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
               std::shared_ptr<Recording> recording, bool owns_recording, const std::string& name, nb::object convert) {
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
                                   .recording = std::move(recording),
                                   .owns_recording = owns_recording,
                                   .name = name},
                                  std::move(convert)};
            },
            nb::arg("source"), nb::kw_only(), nb::arg("batch_size"), nb::arg("shuffle"), nb::arg("num_workers"),
            nb::arg("prefetch_depth"), nb::arg("seed"), nb::arg("max_overtakes"), nb::arg("drop_last"),
            nb::arg("read_concurrency"), nb::arg("memory_budget"), nb::arg("rank"), nb::arg("world_size"),
            nb::arg("recording").none(), nb::arg("owns_recording"), nb::arg("name"), nb::arg("convert").none())
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
