#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include <sys/stat.h>

#include <asio/steady_timer.hpp>

#include <drawpoint/pipeline/cache/sample_cache.hpp>
#include <drawpoint/pipeline/storage/file_reader.hpp>

#include "pipeline/loader/threads/prefetch_core.hpp"
#include "pipeline/loader/threads/suspended_draw.hpp"
#include <drawpoint/pipeline/loader/machine/detail/slot_bytes.hpp>

namespace drawpoint {

static_assert(BatchSource<DataLoader::Pass> && EpochSource<DataLoader> && StampedBatch<Batch> && SizedBatch<Batch>);
static_assert(sizeof(Batch) == 16);

namespace {

void check_range(const char* field, std::size_t value, std::size_t least, std::size_t most) {
    if (std::string complaint = out_of_range(field, value, least, most); !complaint.empty())
        throw std::invalid_argument{std::move(complaint)};
}

const LoaderOptions& checked(const LoaderOptions& options, const Runtime& runtime, const SampleSource& source,
                             const Sampler& sampler) {
    check_options(options, runtime.options().max_threads);
    const SampleLayout layout = source.layout();
    check_range("the sample's rank", layout.rank, 0, layout.shape.size());
    for (std::size_t dimension = 0; dimension < layout.rank; ++dimension)
        if (layout.shape[dimension] < 0)
            throw std::invalid_argument{"the sample's shape[" + std::to_string(dimension) +
                                        "] must be at least 1, or 0 if it varies, got " +
                                        std::to_string(layout.shape[dimension])};
    if (layout.varies() && options.collate == nullptr)
        throw std::invalid_argument{"samples of varying shape need LoaderOptions::collate, e.g. PadCollate"};
    constexpr std::size_t most_batches = std::numeric_limits<std::uint32_t>::max();   // as recordings number them
    if (sampler.size() / options.batch_size + (sampler.size() % options.batch_size != 0) > most_batches)
        throw std::invalid_argument{"batch_size must be greater for " + std::to_string(sampler.size()) +
                                    " samples: a pass has at most " + std::to_string(most_batches) +
                                    " batches, got batch_size = " + std::to_string(options.batch_size)};
    return options;
}

/// Memory that a read buffer will grow to: that of the largest file among up to 32 samples. 0: nothing is read ahead.
std::uint64_t contents_bytes_of(const SampleSource& source, bool collates) {
    const SampleReads* const reads = source.reads();
    constexpr std::uint64_t most_looked_at = std::uint64_t{1} << 56;   // twice as many still fit 64 bits
    if (reads == nullptr || (source.fills_runs() && !collates) || source.size() == 0)
        return 0;
    const std::uint64_t looked_at = std::min<std::uint64_t>(32, source.size());
    std::uint64_t largest = 0;
    for (std::uint64_t i = 0; i < looked_at; ++i) {
        const std::uint64_t index = i * source.size() / looked_at;
        const auto range = reads->location(index);
        const bool whole = !range || range->bytes == FileRange::whole;
        struct stat status{};
        if (whole &&
            (::stat(range ? range->path : source.path(index).c_str(), &status) != 0 || !S_ISREG(status.st_mode)))
            continue;
        const std::uint64_t stored = whole ? static_cast<std::uint64_t>(status.st_size) : range->bytes;
        largest = std::max(largest, contents_memory_bytes(std::min(stored, most_looked_at)));
    }
    return largest == 0 ? detail::contents_capacity(0) : largest;
}

MemoryNeeds needs_of(const SampleSource& source, const Sampler& sampler, const LoaderOptions& options) {
    const SampleCache* const cache = source.cache();
    const std::uint64_t orders = options.num_workers == 0 ? 1 : 2;   // of this epoch, and of the next
    return {.sample_bytes = source.layout().bytes(),
            .collates = options.collate != nullptr,
            .batch_size = options.batch_size,
            .num_workers = options.num_workers,
            .prefetch_depth = options.prefetch_depth,
            .read_concurrency = options.read_concurrency,
            .encoded_bytes = contents_bytes_of(source, options.collate != nullptr),
            .cache_bytes = cache != nullptr && !cache->in_file() ? cache->counters().budget_bytes : 0,
            .order_bytes = sampler.parts() != nullptr ? 0 : orders * sizeof(std::uint64_t) * sampler.size(),
            .dataset_size = sampler.size(),
            .memory_budget = options.memory_budget};
}

MemoryPlan plan_of(const MemoryNeeds& needs) {
    const MemoryPlan plan = plan_memory(needs);
    if (plan.missing_bytes != 0)
        throw std::invalid_argument{"memory_budget = " + std::to_string(needs.memory_budget) + " is " +
                                    std::to_string(plan.missing_bytes) + " bytes less than " +
                                    (needs.collates ? "reads, the order, " : "two batches, ") +
                                    "the workers and the cache need"};
    return plan;
}

PrefetchCore* new_core(Runtime& runtime, const SampleSource& source, const Sampler& sampler,
                       const LoaderOptions& options, std::string_view name) {
    const LoaderOptions& asked = checked(options, runtime, source, sampler);
    const MemoryNeeds needs = needs_of(source, sampler, asked);
    return new PrefetchCore{runtime, source, sampler, asked, needs, plan_of(needs), name};
}

/// Ends one suspended draw when its time is up.
class TimeIsUp {
public:
    explicit TimeIsUp(PrefetchCore* core) noexcept : core_{core}, draw_{core->suspensions()} { core_->retain(); }
    TimeIsUp(TimeIsUp&& other) noexcept : core_{std::exchange(other.core_, nullptr)}, draw_{other.draw_} {}
    ~TimeIsUp() {
        if (core_)
            core_->release();
    }
    void operator()(const std::error_code& error) const {
        if (!error)
            core_->interrupt_draw(draw_, asio::error::make_error_code(asio::error::timed_out));
    }

private:
    PrefetchCore* core_;
    std::uint64_t draw_;
};

}   // namespace

DataLoader::DataLoader(Runtime& runtime, const SampleSource& source, const Sampler& sampler,
                       const LoaderOptions& options, std::string_view name)
    : core_{new_core(runtime, source, sampler, options, name)} {}

DataLoader::~DataLoader() {
    core_->shut_down_loader();
    core_->release();
}

DataLoader::Pass DataLoader::epoch(std::size_t e, EpochOptions options) {
    const std::uint64_t serial = core_->begin_pass(e, options);
    return Pass{core_, serial};
}

void DataLoader::reconfigure(const LoaderChange& change) {
    LoaderOptions asked = core_->asked();
    const bool has_workers = asked.num_workers != 0;
    if (has_workers)
        check_range("num_workers", change.num_workers.value_or(1), 1, loader_limits::most_workers);
    else if (change.num_workers.value_or(0) != 0)
        throw std::invalid_argument{"num_workers must stay 0: the loader was made without workers, got " +
                                    std::to_string(*change.num_workers)};
    asked.num_workers = change.num_workers.value_or(asked.num_workers);
    asked.prefetch_depth = change.prefetch_depth.value_or(asked.prefetch_depth);
    asked.memory_budget = change.memory_budget.value_or(asked.memory_budget);
    asked.order = change.order.value_or(asked.order);
    check_options(asked, core_->max_threads());
    MemoryNeeds needs = core_->needs();
    needs.num_workers = asked.num_workers;
    needs.prefetch_depth = asked.prefetch_depth;
    needs.memory_budget = asked.memory_budget;
    core_->reconfigure(asked, needs, plan_of(needs));
}

std::string DataLoader::state() const { return to_bytes(core_->state()); }
void DataLoader::restore(std::string_view state) { core_->restore(parse_state(state)); }
void DataLoader::request_stop() noexcept { core_->stop(); }
const LoaderOptions& DataLoader::options() const noexcept { return core_->options(); }
const MemoryPlan& DataLoader::memory_plan() const noexcept { return core_->memory_plan(); }
const SampleLayout& DataLoader::layout() const noexcept { return core_->layout(); }
std::size_t DataLoader::batches_per_epoch() const noexcept { return core_->batches_per_epoch(); }
std::size_t DataLoader::most_workers() const noexcept {
    return core_->max_threads() != 0 ? core_->max_threads() : loader_limits::most_workers;
}
std::int64_t DataLoader::now_ns() const noexcept { return core_->now_ns(); }
LoaderCounters DataLoader::counters() const noexcept { return core_->counters(); }
void DataLoader::enable_digest() noexcept { core_->enable_digest(); }
std::string DataLoader::digest() const { return core_->digest(); }

DataLoader::Pass::Pass(PrefetchCore* core, std::uint64_t serial) noexcept : core_{core}, serial_{serial} {
    core_->retain();
}
DataLoader::Pass::Pass(Pass&& other) noexcept : core_{std::exchange(other.core_, nullptr)}, serial_{other.serial_} {}

DataLoader::Pass& DataLoader::Pass::operator=(Pass&& other) noexcept {
    Pass before{std::move(*this)};
    core_ = std::exchange(other.core_, nullptr);
    serial_ = other.serial_;
    return *this;
}

DataLoader::Pass::~Pass() {
    if (core_) {
        core_->end_pass(serial_);
        core_->release();
    }
}

std::optional<std::size_t> DataLoader::Pass::size() const noexcept { return core_->batches_per_epoch(); }

std::size_t DataLoader::Pass::drawn() const noexcept { return core_->drawn(serial_); }

Awaitable<std::optional<Batch>> DataLoader::Pass::next() {
    PrefetchCore* const core = core_;   // copies: while it is suspended, the pass may be moved
    const std::uint64_t serial = serial_;
    while (!core->exhausted(serial)) {
        if (!core->ready() && core->must_wait(DrawMailbox::Kind::waiting)) {
            const Announced announced(core);
            Park park(core);
            asio::use_awaitable_t<> token;
            co_await asio::async_initiate<asio::use_awaitable_t<>, void(std::exception_ptr)>(park, token);
        }
        if (!core->passes_over()) [[likely]]
            co_return core->take();
    }
    co_return std::nullopt;
}

Awaitable<std::optional<Batch>> DataLoader::Pass::next_for(std::chrono::nanoseconds timeout) {
    PrefetchCore* const core = core_;   // copies: while it is suspended, the pass may be moved
    const std::uint64_t serial = serial_;
    std::optional<asio::steady_timer> timer;   // of the first wait, which later ones share
    while (!core->exhausted(serial)) {
        if (!core->ready() && core->must_wait(DrawMailbox::Kind::waiting)) {
            const Announced announced(core);
            if (!timer)
                timer.emplace(core->context(), timeout);
            TimeIsUp ends_draw(core);
            timer->async_wait(std::move(ends_draw));
            Park park(core);
            asio::use_awaitable_t<> token;
            co_await asio::async_initiate<asio::use_awaitable_t<>, void(std::exception_ptr)>(park, token);
        }
        if (!core->passes_over()) [[likely]]
            co_return core->take();
    }
    co_return std::nullopt;
}

bool DataLoader::Pass::wait_for(std::chrono::nanoseconds timeout) {
    return core_->exhausted(serial_) || core_->wait_outside(timeout);
}

int DataLoader::Pass::ready_descriptor() { return core_->ready_descriptor(); }

std::optional<Batch> DataLoader::Pass::try_next() {
    core_->settle_outside_wait();
    if (core_->exhausted(serial_) || !core_->has_batch(0))
        return std::nullopt;
    return core_->take();
}

std::optional<ReadyBatch> DataLoader::Pass::peek(std::size_t ahead) const noexcept {
    if (core_->left(serial_) <= ahead)
        return std::nullopt;
    for (std::size_t before = 0; before <= ahead; ++before)
        if (!core_->has_batch(before))
            return std::nullopt;
    return core_->peek(ahead);
}

std::optional<Batch> DataLoader::Pass::next_blocking() {
    while (!core_->exhausted(serial_)) {
        if (!core_->ready() && core_->must_wait(DrawMailbox::Kind::waiting_blocked))
            core_->wait_blocked();
        if (!core_->passes_over()) [[likely]]
            return core_->take();
    }
    return std::nullopt;
}

}   // namespace drawpoint
