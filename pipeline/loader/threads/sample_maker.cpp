#include "pipeline/loader/threads/sample_maker.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace drawpoint {

namespace {

// The stages in which a sample can fail outside of its source's stages, but for in_collate.
constexpr const char *in_sampler = "sampler", *in_memory = "batch memory", *in_scratch = "make_scratch";

}   // namespace

SampleMaker::SampleMaker(const SampleSource& source, ReadAhead* reads, Recorder* recorder, const AnyClock& clock,
                         std::uint16_t pipeline, const LoaderOptions& options)
    : source_{&source},
      reads_{reads},
      collate_{options.collate},
      fills_runs_{source.fills_runs() && options.collate == nullptr},
      source_size_{source.size()},
      sample_bytes_{source.layout().bytes()},
      layout_{source.layout()},
      stages_{source.stages()},
      recorder_{recorder},
      clock_{clock},
      pipeline_{pipeline},
      seed_{options.seed},
      on_error_{options.on_error} {}

std::unique_ptr<SampleWorker> SampleMaker::make_worker() const {
    auto worker = std::make_unique<SampleWorker>();
    if (recorder_)
        worker->track = recorder_->add_worker();
    return worker;
}

std::int64_t SampleMaker::make(SampleWorker& worker, Slot& s, std::uint32_t slot, std::uint32_t first,
                               std::uint32_t count, std::int64_t begin_ns, const std::atomic<bool>& stopping,
                               std::mutex& mutex) const noexcept {
    if (fills_runs_)
        return make_run(worker, s, first, count, begin_ns, stopping, mutex);
    const bool recorded = records(worker), measured = measures(worker);
    SampleTask& task = worker.task;
    task.seed = seed_;
    task.epoch = s.epoch;
    task.clock = recorder_ ? &clock_ : nullptr;
    std::uint32_t at = first;
    for (; at < first + count && !stopping.load(std::memory_order_relaxed); ++at) {
        task.index = s.indices[at];
        worker.is(WorkerActivity::What::sample, task.index);
        task.bytes_read = 0;
        task.stage_count = 0;
        const std::int64_t taken_up_ns = at == first ? begin_ns : recorded ? clock_.now_ns() : no_stamp;
        worker.read = {};
        task.cpu_ns = measured ? worker.usage.begin(at != first) : no_stamp;
        bool complete = false;
        const char* where = in_sampler;
        try {
            check(task.index);
            where = in_memory;
            if (!s.memory || (collate_ && !s.collation->samples))
                throw std::bad_alloc{};
            where = in_scratch;
            if (!worker.scratch)
                worker.scratch = source_->make_scratch();
            where = nullptr;
            task.target = s.memory->targets() + at;
            if (collate_) {
                fill_buffer(worker, s, slot, at, taken_up_ns);
            } else {
                task.data = {s.memory->data() + at * sample_bytes_, sample_bytes_};
                fill(worker, slot, at, taken_up_ns);
            }
            complete = true;
        } catch (...) {
            if (reads_ && reads_->stopping())
                break;   // the stop ended the read: no failure
            note_failure(s, {where == in_memory ? SampleFailure::whole_batch : at, task.index, task.stage_count, where},
                         std::current_exception(), mutex);
        }
        if (recorded) {
            SampleRecord& record = worker.record;
            record.row = row_of(s, at, complete);
            record.row.bytes = task.bytes_read;
            record.row.begin_ns = taken_up_ns;
            record.row.read_begin_ns = worker.read.begin_ns;
            record.row.read_end_ns = worker.read.end_ns;
            record.row.read_cpu_ns = worker.read.cpu_ns;
            record.row.read_run_queue_ns = worker.read.run_queue_ns;
            record.stage_count = std::min<std::uint32_t>(task.stage_count, max_stages);
            std::copy_n(task.stages.begin(), record.stage_count, record.stages.begin());
            if (measured)
                worker.usage.end(record, task.cpu_ns);
            worker.track.push(record);
        }
    }
    if (collate_ && at < first + count)
        s.collation->lacks_samples.store(true, std::memory_order_relaxed);
    return begin_ns == no_stamp ? no_stamp : clock_.now_ns();
}

void SampleMaker::fill(SampleWorker& worker, std::uint32_t slot, std::uint32_t at, std::int64_t taken_up_ns) const {
    if (reads_)
        read_and_fill(worker, slot, at, taken_up_ns);
    else
        source_->fill(worker.task, *worker.scratch);
}

void SampleMaker::fill_buffer(SampleWorker& worker, Slot& s, std::uint32_t slot, std::uint32_t at,
                              std::int64_t taken_up_ns) const {
    SampleBuffer& buffer = s.collation->samples[at];
    struct Counted {   // counts the buffer's memory, also if the sample fails
        std::atomic<std::uint64_t>& held;
        const SampleBuffer& buffer;
        std::size_t before;
        ~Counted() {
            if (buffer.held() != before)
                held.fetch_add(buffer.held() - before, std::memory_order_relaxed);
        }
    } counted{s.collation->samples_held, buffer, buffer.held()};
    buffer.clear();
    worker.task.buffer = &buffer;
    worker.task.data = layout_.varies() ? std::span<std::byte>{} : buffer.reshape(layout_);
    fill(worker, slot, at, taken_up_ns);
    if (!buffer.has_layout())
        throw std::logic_error{"its shape varies, and the source never called reshape()"};
}

void SampleMaker::collate(SampleWorker& worker, Slot& s, std::int64_t begin_ns, const std::atomic<bool>& stopping,
                          std::mutex& mutex) const noexcept {
    SlotCollation& c = *s.collation;
    const std::uint32_t samples = s.failed ? s.kept.value_or(0) : s.size;
    if (samples != 0 && !c.lacks_samples.load(std::memory_order_relaxed) && !stopping.load(std::memory_order_relaxed))
        make_batch(worker, s, samples, begin_ns, mutex);
    if (c.samples)
        for (SampleBuffer& buffer : std::span{c.samples.get(), s.size})
            c.released += buffer.release_excess();
}

void SampleMaker::make_batch(SampleWorker& worker, Slot& s, std::uint32_t samples, std::int64_t begin_ns,
                             std::mutex& mutex) const noexcept {
    SlotCollation& c = *s.collation;
    const std::uint64_t before = c.batch.bytes();
    if (worker.track)
        c.worker.store(worker.track.worker(), std::memory_order_relaxed);
    c.begin_ns.store(begin_ns, std::memory_order_relaxed);
    worker.is(WorkerActivity::What::collate, s.number);
    const bool measured = begin_ns != no_stamp && !clock_.is_manual() && worker.collate_use.begin();
    try {
        c.batch.clear();
        collate_->collate({.samples = {c.samples.get(), samples},
                           .targets = {s.memory->targets(), samples},
                           .indices = {s.indices.get(), samples},
                           .epoch = s.epoch,
                           .seed = seed_},
                          c.batch);
        std::uint64_t bytes = 0;
        for (const BatchPart& part : c.batch.parts())
            bytes += part.data().size();
        c.bytes.store(bytes, std::memory_order_relaxed);
        if (c.batch.parts().empty())
            throw std::logic_error{collate_->name() + " added no array to the batch"};
    } catch (...) {
        s.kept.reset();
        {   // the samples that failed are settled: the batch fails because of this alone
            const std::lock_guard lock{mutex};
            s.failures.clear();
        }
        note_failure(s, {SampleFailure::whole_batch, s.indices[0], 0, in_collate}, std::current_exception(), mutex);
    }
    if (begin_ns != no_stamp) {
        if (measured) {
            const auto [cpu_ns, run_queue_ns] = worker.collate_use.end();
            c.cpu_ns.store(cpu_ns, std::memory_order_relaxed);
            c.run_queue_ns.store(run_queue_ns, std::memory_order_relaxed);
        }
        const std::int64_t end_ns = clock_.now_ns();
        worker.collate_use.took(end_ns - begin_ns);
        c.end_ns.store(end_ns, std::memory_order_release);   // stored after the others: see record()
        worker.track.push_collate(begin_ns, end_ns);
    }
    s.held.fetch_add(c.batch.bytes() - before, std::memory_order_relaxed);
}

void SampleMaker::read_and_fill(SampleWorker& worker, std::uint32_t slot, std::uint32_t at,
                                std::int64_t taken_up_ns) const {
    SampleTask& task = worker.task;
    task.stages[0] = {.begin_ns = taken_up_ns, .ns = 0};
    task.stage_count = 1;
    std::int64_t there_ns = no_stamp;
    struct Stages {   // sets the first stage's times, also if the sample fails
        const AnyClock& clock;
        SampleTask& task;
        std::int64_t taken_up_ns;
        const std::int64_t& there_ns;
        ~Stages() {
            task.contents = nullptr;
            StageRow& read = task.stages[0];
            if (taken_up_ns == no_stamp || task.stage_count == 0)
                return;
            read.ns = there_ns == no_stamp ? clock.now_ns() - taken_up_ns : read.begin_ns + read.ns - taken_up_ns;
            read.begin_ns = taken_up_ns;
        }
    } stages{clock_, task, taken_up_ns, there_ns};
    worker.is(WorkerActivity::What::read, task.index);
    const ReadAhead::Taken bytes = reads_->take(worker.reads, slot, at, task.index);
    worker.is(WorkerActivity::What::sample, task.index);
    task.stage_count = 0;
    worker.read = bytes.times;
    there_ns = clock_.now_ns();
    struct Done {
        ReadAhead& reads;
        WorkerReads& worker;
        const ReadAhead::Taken& bytes;
        const AnyClock& clock;
        std::int64_t since_ns;
        ~Done() { reads.done(worker, bytes, clock.now_ns() - since_ns); }
    } done{*reads_, worker.reads, bytes, clock_, there_ns};
    task.contents = bytes.contents;
    source_->fill(task, *worker.scratch);
}

std::int64_t SampleMaker::make_run(SampleWorker& worker, Slot& s, std::uint32_t first, std::uint32_t count,
                                   std::int64_t begin_ns, const std::atomic<bool>& stopping,
                                   std::mutex& mutex) const noexcept {
    const bool recorded = records(worker), measured = measures(worker);
    const std::int64_t cpu_ns = measured ? worker.usage.begin(false) : no_stamp;
    worker.is(WorkerActivity::What::sample, s.indices[first]);
    const bool complete = fill_runs(worker, s, first, first + count, stopping, mutex);
    if (begin_ns == no_stamp)
        return no_stamp;
    const std::int64_t end_ns = clock_.now_ns();
    if (recorded) {
        SampleRecord& record = worker.record;
        record.row = row_of(s, first, complete);
        record.row.samples = count;
        record.row.bytes = worker.task.bytes_read;
        record.row.begin_ns = begin_ns;
        record.stage_count = 1;
        record.stages[0] = {begin_ns, end_ns - begin_ns};
        if (measured) {
            const std::int64_t end_cpu_ns = cpu_ns != no_stamp ? ThreadUsage::cpu_ns() : no_stamp;
            record.stages[0].cpu_ns = cpu_ns != no_stamp ? end_cpu_ns - cpu_ns : no_stamp;
            worker.usage.end(record, end_cpu_ns);
        }
        worker.track.push(record);
    }
    return end_ns;
}

bool SampleMaker::fill_runs(SampleWorker& worker, Slot& s, std::uint32_t first, std::uint32_t end,
                            const std::atomic<bool>& stopping, std::mutex& mutex) const noexcept {
    worker.task.bytes_read = 0;
    if (!s.memory) {
        note_failure(s, {SampleFailure::whole_batch, s.indices[first], 1, in_memory},
                     std::make_exception_ptr(std::bad_alloc{}), mutex);
        return false;
    }
    if (fill_run(worker, s, first, end, mutex))
        return true;
    if (end - first == 1)
        return false;
    bool complete = true;   // which one failed is seen when they are made one by one
    for (; first < end && !stopping.load(std::memory_order_relaxed); ++first)
        complete &= fill_run(worker, s, first, first + 1, mutex);
    return complete;
}

bool SampleMaker::fill_run(SampleWorker& worker, Slot& s, std::uint32_t first, std::uint32_t end,
                           std::mutex& mutex) const noexcept {
    SampleRun& run = worker.run;
    run.indices = {s.indices.get() + first, end - first};
    run.seed = seed_;
    run.epoch = s.epoch;
    run.bytes_read = 0;
    bool complete = false;
    const char* where = in_sampler;
    try {
        for (const std::uint64_t index : run.indices)
            check(index);
        where = in_scratch;
        if (!worker.scratch)
            worker.scratch = source_->make_scratch();
        where = nullptr;
        run.data = s.memory->data() + first * sample_bytes_;
        run.targets = s.memory->targets() + first;
        source_->fill_run(run, *worker.scratch);
        complete = true;
    } catch (...) {
        if (end - first == 1)
            note_failure(s, {first, s.indices[first], 1, where}, std::current_exception(), mutex);
    }
    worker.task.bytes_read += run.bytes_read;
    return complete;
}

SampleRow SampleMaker::row_of(const Slot& s, std::uint32_t at, bool complete) const noexcept {
    return {.index = s.indices[at],
            .epoch = static_cast<std::uint32_t>(s.epoch),
            .batch = s.number,
            .slot = at,
            .pipeline = pipeline_,
            .status = complete ? SampleStatus::complete : SampleStatus::failed};
}

void SampleMaker::throw_out_of_range(std::uint64_t index) const {
    throw std::out_of_range{"index " + std::to_string(index) + " of a data set of " + std::to_string(source_size_)};
}

}   // namespace drawpoint
