#include <drawpoint/pipeline/torch/device_loader.hpp>

#include <algorithm>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>

#include <drawpoint/pipeline/loader/machine/detail/slot_bytes.hpp>

#include "pipeline/loader/threads/suspended_draw.hpp"
#include "pipeline/torch/device_core.hpp"

namespace drawpoint {

static_assert(BatchSource<DeviceLoader::Pass> && ContinuedSource<DeviceLoader::Pass> && EpochSource<DeviceLoader>);
static_assert(StampedBatch<DeviceBatch> && SizedBatch<DeviceBatch> && NumberedBatch<DeviceBatch>);
static_assert(WorkingBatch<DeviceBatch> && DrainedSource<DeviceLoader::Pass>);

/// A pass of a DeviceLoader. A suspended draw keeps it alive.
class DevicePass {
public:
    DevicePass(std::shared_ptr<DeviceCore> core, const DataLoader& host, DataLoader::Pass inner, std::size_t epoch,
               LoopTrack* track)
        : core_{std::move(core)}, host_{&host}, inner_{std::move(inner)} {
        core_->begin_timing(this, track, inner_->core_->pipeline(), static_cast<std::uint32_t>(epoch));
    }

    [[nodiscard]] const DataLoader::Pass& inner() const noexcept { return *inner_; }
    /// `self`: keeps this alive.
    [[nodiscard]] Awaitable<std::optional<DeviceBatch>> next(std::shared_ptr<DevicePass> self);
    void drain() noexcept { core_->drain(this); }
    /// Waits for copies of batches that are not drawn, and ends a suspended draw.
    void end() noexcept {
        if (inner_->drawn() != inner_->size())   // else they are of another pass
            core_->abandon();
        core_->end_timing(this);
        undelivered_.reset();
        inner_.reset();
    }

private:
    /// Whether next() need not wait for the device. Throws DeviceError.
    [[nodiscard]] bool may_draw() const;
    /// Prepares a batch that is drawn already. If the device fails, the batch is kept for the next draw.
    void prepare(std::optional<Batch>& drawn) {
        try {
            core_->prepare(*drawn);
        } catch (const DeviceError&) {
            undelivered_ = std::exchange(drawn, std::nullopt);
            throw;
        }
    }
    /// While a draw waits for the device.
    class Waiting {
    public:
        explicit Waiting(bool& waits) noexcept : waits_{waits} { waits_ = true; }
        Waiting(const Waiting&) = delete;
        Waiting& operator=(const Waiting&) = delete;
        ~Waiting() { waits_ = false; }

    private:
        bool& waits_;
    };

    std::shared_ptr<DeviceCore> core_;
    const DataLoader* host_;
    std::optional<DataLoader::Pass> inner_;   // nullopt: the pass is destroyed
    std::optional<Batch> undelivered_;        // drawn from the loader, and not copied, because the device failed
    bool waits_ = false;                      // a draw waits for the device
};

namespace {

[[noreturn]] void throw_aborted() {
    throw std::system_error{asio::error::make_error_code(asio::error::operation_aborted)};
}

void check(const DeviceOptions& options) {
    constexpr std::size_t most = loader_limits::most_prefetch_depth;
    if (options.device_prefetch > most)
        throw std::invalid_argument{"device_prefetch must be at most " + std::to_string(most) + ", got " +
                                    std::to_string(options.device_prefetch)};
    const auto is_one_of = [&](auto... types) { return ((options.type == types) || ...); };
    if (!is_one_of(ScalarType::float32, ScalarType::bfloat16, ScalarType::float16))
        throw std::invalid_argument{"type must be float32, bfloat16 or float16"};
    if (!options.normalize && (options.type != ScalarType::float32 || options.channels_last))
        throw std::invalid_argument{"type and channels_last are those of normalised values: they need normalize"};
}

/// Throws std::invalid_argument unless samples of the loader can be normalised.
void check_normalize(const ChannelNormalization& normalize, const DataLoader& loader) {
    if (loader.options().collate != nullptr)
        throw std::invalid_argument{"normalize: not with a loader that collates"};
    const SampleLayout& layout = loader.layout();
    if (layout.type != ScalarType::uint8)
        throw std::invalid_argument{
            "normalize: the samples are not uint8: end the recipe in to_uint8, without Normalize"};
    if (layout.rank != 3 || layout.shape[0] != 3)
        throw std::invalid_argument{"normalize: the samples must be images of 3 × height × width"};
    for (const float deviation : normalize.standard_deviation)
        if (!(deviation > 0))
            throw std::invalid_argument{"normalize: standard_deviation must be above 0, got " +
                                        std::to_string(deviation)};
}

/// Bytes of a batch on the device; 0: known only with the first batch, since the loader collates.
std::uint64_t bytes_of_batch(const DataLoader& loader) {
    if (loader.options().collate != nullptr)
        return 0;
    const std::size_t samples = loader.memory_plan().slot_samples;
    return targets_offset(loader.layout().bytes() * samples) + samples * sizeof(std::int64_t);
}

std::shared_ptr<DeviceCore> new_core(const DataLoader& loader, const DeviceOptions& options) {
    check(options);
    if (options.normalize)
        check_normalize(*options.normalize, loader);
    const c10::Device device = device_named(options.device);
    const std::uint64_t bytes = bytes_of_batch(loader);
    const std::uint64_t values =
        options.normalize ? loader.layout().values() * loader.memory_plan().slot_samples * size_of(options.type) : 0;
    std::size_t buffers = options.device_prefetch + 1;
    if (options.memory_budget != 0 && bytes != 0) {
        if (bytes + values > options.memory_budget)
            throw std::invalid_argument{"memory_budget = " + std::to_string(options.memory_budget) +
                                        " is less than one batch on the device: " + std::to_string(bytes + values) +
                                        " bytes"};
        buffers = std::min<std::uint64_t>(buffers, options.memory_budget / (bytes + values));
    }
    return std::make_shared<DeviceCore>(loader, device, options, buffers, bytes, values);
}

}   // namespace

bool DevicePass::may_draw() const {
    core_->reclaim();
    if (inner_->drawn() == inner_->size() && !undelivered_)
        return true;   // there is nothing to draw
    return core_->has_buffer() &&
           (core_->ahead() > 0 || undelivered_ || core_->leaves_slots(host_->options().prefetch_depth + 1) ||
            inner_->peek().has_value());
}

// All of it in one coroutine: Asio keeps the memory of two frames for the next draw, of this one and of what it awaits.
Awaitable<std::optional<DeviceBatch>> DevicePass::next([[maybe_unused]] std::shared_ptr<DevicePass> self) {
    if (!inner_)
        throw_aborted();
    if (waits_)
        throw std::logic_error{"next(): another draw of this loader waits for the device"};
    core_->check();
    PrefetchCore* const loader = inner_->core_;
    asio::use_awaitable_t<> token;
    std::optional<asio::steady_timer> timer;
    std::size_t looks = 0;
    for (; !may_draw(); ++looks) {
        if (core_->holds_all())
            throw std::logic_error{"next(): all " + std::to_string(core_->counters().buffers) +
                                   " batches on the device are held: give one back, or raise device_prefetch"};
        if (loader->stopping())
            throw_aborted();
        if (looks == 0)
            core_->count_wait();
        const Waiting waiting{waits_};
        // A copy takes some 100 µs, a step of the device often many milliseconds.
        if (looks < 4) {
            co_await asio::post(token);
        } else {
            if (!timer) {
                const auto executor = co_await asio::this_coro::executor;
                timer.emplace(executor);
            }
            timer->expires_after(std::chrono::microseconds{50});
            co_await timer->async_wait(token);
        }
        if (!inner_)
            throw_aborted();
    }
    const std::int64_t waited_ns = looks > 0 ? host_->now_ns() : no_stamp;
    std::optional<Batch> drawn = std::exchange(undelivered_, std::nullopt);
    bool is_prepared = false;
    while (!drawn && !loader->exhausted(inner_->serial_)) {   // as DataLoader::Pass::next()
        if (!loader->ready() && loader->must_wait(DrawMailbox::Kind::waiting)) {
            const Announced announced(loader);
            Park park(loader);
            co_await asio::async_initiate<asio::use_awaitable_t<>, void(std::exception_ptr)>(park, token);
            if (!inner_)
                throw_aborted();
        }
        if (loader->passes_over())
            continue;
        // Before it is drawn, so that a failure of the device takes nothing. A batch that lacks samples is not shown.
        if (const std::optional<ReadyBatch> ready = inner_->peek()) {
            core_->prepare(*ready);
            is_prepared = true;
        }
        drawn.emplace(loader->take());
    }
    if (!drawn)
        co_return std::nullopt;
    if (!is_prepared)
        prepare(drawn);
    DeviceBatch batch = core_->draw(std::move(*drawn), waited_ns, host_->now_ns());
    core_->issue_ahead(*inner_);
    core_->drew(batch, host_->now_ns());
    co_return std::move(batch);
}

std::string find_device(const std::string& name) { return device_named(name).str(); }

DeviceLoader::DeviceLoader(DataLoader& loader, const DeviceOptions& options)
    : host_{&loader}, core_{new_core(loader, options)} {}
DeviceLoader::~DeviceLoader() = default;

DeviceLoader::Pass DeviceLoader::epoch(std::size_t e, EpochOptions options) {
    return Pass{std::make_shared<DevicePass>(core_, *host_, host_->epoch(e, options), e, options.track)};
}

std::string DeviceLoader::device() const { return core_->stage().device().str(); }
DeviceCounters DeviceLoader::counters() const noexcept { return core_->counters(); }

DeviceLoader::Pass::Pass(std::shared_ptr<DevicePass> pass) noexcept : pass_{std::move(pass)} {}
DeviceLoader::Pass::Pass(Pass&&) noexcept = default;

DeviceLoader::Pass& DeviceLoader::Pass::operator=(Pass&& other) noexcept {
    Pass before{std::move(*this)};
    pass_ = std::move(other.pass_);
    return *this;
}

DeviceLoader::Pass::~Pass() {
    if (pass_)
        pass_->end();
}

std::optional<std::size_t> DeviceLoader::Pass::size() const noexcept { return pass_->inner().size(); }
std::size_t DeviceLoader::Pass::drawn() const noexcept { return pass_->inner().drawn(); }
Awaitable<std::optional<DeviceBatch>> DeviceLoader::Pass::next() { return pass_->next(pass_); }
void DeviceLoader::Pass::drain() noexcept { pass_->drain(); }

DeviceBatch::DeviceBatch(std::shared_ptr<DeviceCore> core, std::size_t buffer) noexcept
    : core_{std::move(core)}, buffer_{buffer} {}
DeviceBatch::DeviceBatch(DeviceBatch&&) noexcept = default;

DeviceBatch& DeviceBatch::operator=(DeviceBatch&& other) noexcept {
    if (this != &other) {
        reset();
        core_ = std::move(other.core_);
        buffer_ = other.buffer_;
    }
    return *this;
}

DeviceBatch::~DeviceBatch() { reset(); }

void DeviceBatch::reset() noexcept {
    if (const std::shared_ptr<DeviceCore> core = std::move(core_))
        core->give_back(buffer_);
}

std::optional<double> DeviceBatch::next_loss() noexcept { return core_ ? core_->next_loss() : std::nullopt; }

void DeviceBatch::end_forward() noexcept {
    if (core_)
        core_->end_forward(buffer_);
}

void DeviceBatch::end_work() noexcept {
    if (core_)
        core_->end_work(buffer_);
}

std::size_t DeviceBatch::size() const noexcept { return core_->host(buffer_).size(); }
std::size_t DeviceBatch::epoch() const noexcept { return core_->host(buffer_).epoch(); }
std::size_t DeviceBatch::number() const noexcept { return core_->host(buffer_).number(); }
const SampleLayout& DeviceBatch::layout() const noexcept { return core_->host(buffer_).layout(); }
std::span<const std::uint64_t> DeviceBatch::indices() const noexcept { return core_->host(buffer_).indices(); }
std::span<const std::int64_t> DeviceBatch::targets() const noexcept { return core_->host(buffer_).targets(); }
std::span<const BatchPart> DeviceBatch::parts() const noexcept { return core_->host(buffer_).parts(); }
DrawStamps DeviceBatch::draw_stamps() const noexcept { return core_->stamps(buffer_); }

}   // namespace drawpoint
