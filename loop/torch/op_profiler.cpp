#include <drawpoint/loop/torch/op_profiler.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <typeinfo>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>
#include <fmt/format.h>
#include <torch/csrc/profiler/orchestration/observer.h>
#include <torch/csrc/profiler/util.h>

#include "op_profiler_stacks.hpp"

namespace drawpoint {
namespace {

namespace profiler = torch::profiler::impl;

struct BytesHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view bytes) const noexcept { return std::hash<std::string_view>{}(bytes); }
};
/// A map that looks up keys without creating a string.
template <class Value>
using ByContent = std::unordered_map<std::string, Value, BytesHash, std::equal_to<>>;

template <class T>
std::string_view bytes_of(const std::vector<T>& values) noexcept {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

struct Name {
    std::uint32_t id = 0;
    bool has_flops = false;   // LibTorch has a formula for it
};

bool has_flops_formula(std::string_view name) noexcept {
    constexpr std::array<std::string_view, 7> names{"aten::conv2d",  "aten::mm",  "aten::addmm", "aten::bmm",
                                                    "aten::baddbmm", "aten::mul", "aten::add"};
    return std::ranges::find(names, name) != names.end();
}

/// The sizes of an operator's inputs as a sequence of numbers, which is the key for looking up their text.
class Sizes {
public:
    void read(c10::ArrayRef<const c10::IValue> inputs) {
        values_.clear();
        for (const c10::IValue& input : inputs) {
            if (input.isTensor())
                add(input.toTensor());
            else if (input.isTensorList())
                add_list(input.toListRef());
            else
                values_.push_back(end);
        }
    }
    [[nodiscard]] std::string_view key() const noexcept { return bytes_of(values_); }

    /// The sizes as PyTorch's "Input Dims"; [] for an input that is not a tensor and for a list of more than 30.
    [[nodiscard]] std::string text() const {
        std::string out = "[";
        for (std::size_t at = 0; at < values_.size();) {
            out += at == 0 ? "" : ", ";
            if (values_[at] != list_begin) {
                at = add_text(out, at);
                continue;
            }
            out += '[';
            for (++at; values_[at] != list_end;) {
                out += out.back() == '[' ? "" : ", ";
                at = add_text(out, at);
            }
            ++at;
            out += ']';
        }
        return out + ']';
    }

private:
    static constexpr std::int64_t end = -1, list_begin = -2, list_end = -3;   // sizes are never negative

    static bool has_sizes(const at::Tensor& tensor) {
        return tensor.defined() && !tensor.is_nested() && !tensor.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
    }
    void add(const at::Tensor& tensor) {
        if (has_sizes(tensor))
            values_.insert(values_.end(), tensor.sizes().begin(), tensor.sizes().end());
        values_.push_back(end);
    }
    void add_list(c10::ArrayRef<c10::IValue> list) {
        const auto has = [](const c10::IValue& value) { return value.isTensor() && has_sizes(value.toTensor()); };
        if (list.empty() || list.size() > profiler::TENSOR_LIST_DISPLAY_LENGTH_LIMIT ||
            !std::ranges::all_of(list, has)) {
            values_.push_back(end);
            return;
        }
        values_.push_back(list_begin);
        for (const c10::IValue& value : list)
            add(value.toTensor());
        values_.push_back(list_end);
    }
    std::size_t add_text(std::string& out, std::size_t at) const {
        out += '[';
        for (; values_[at] != end; ++at) {
            out += out.back() == '[' ? "" : ", ";
            out += std::to_string(values_[at]);
        }
        out += ']';
        return at + 1;
    }

    std::vector<std::int64_t> values_;
};

/// The state that a thread keeps between operators. Used by that thread only.
struct PerThread {
    struct Open {
        const at::RecordFunction* call;
        std::uint32_t ticket;
    };
    std::uint64_t window = 0;   // the window that `open` belongs to
    std::vector<Open> open;     // innermost last
    ByContent<Name> names;
    ByContent<std::uint32_t> shapes;
    Sizes sizes;
    detail::CallStacks stacks;
};

/// A PerThread for each of LibTorch's thread numbers (counted from 1), found without a lock and without a thread-local
/// variable.
class Threads {
public:
    Threads() = default;
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;
    ~Threads() {
        for (auto& slot : leaves_) {
            Leaf* leaf = slot.load();
            if (leaf == nullptr)
                continue;
            for (auto& thread : *leaf)
                delete thread.load();
            delete leaf;
        }
    }
    /// Returns null for thread numbers above a million.
    PerThread* get(std::uint64_t number) {
        if (number >= leaf_size * leaf_size) [[unlikely]]
            return nullptr;
        Leaf& leaf = made(leaves_[number / leaf_size]);
        return &made(leaf[number % leaf_size]);
    }

private:
    static constexpr std::uint64_t leaf_size = 1024;
    using Leaf = std::array<std::atomic<PerThread*>, leaf_size>;

    template <class T>
    static T& made(std::atomic<T*>& slot) {
        T* there = slot.load(std::memory_order_acquire);
        if (there != nullptr) [[likely]]
            return *there;
        auto fresh = std::make_unique<T>();
        if (slot.compare_exchange_strong(there, fresh.get(), std::memory_order_acq_rel))
            return *fresh.release();
        return *there;
    }
    std::array<std::atomic<Leaf*>, leaf_size> leaves_{};
};

/// The profiler in the observed threads' debug info. LibTorch looks for it there, and passes it on to threads that work
/// for them. Derives from LibTorch's own base class, since LibTorch calls its functions.
class OpState final : public profiler::ProfilerStateBase {
public:
    OpState(Recorder& recorder, const OpProfilerOptions& options)
        : ProfilerStateBase{profiler::ProfilerConfig{profiler::ProfilerState::Disabled, options.record_shapes,
                                                     options.profile_memory}},
          options_{options},
          recorder_{&recorder} {}

    /// The OpState that observes the calling thread, or null.
    static OpState* here() noexcept {
        c10::DebugInfoBase* info = c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE);
        return info != nullptr && typeid(*info) == typeid(OpState) ? static_cast<OpState*>(info) : nullptr;
    }

    [[nodiscard]] const OpProfilerOptions& options() const noexcept { return options_; }
    [[nodiscard]] std::atomic<std::uint64_t>& window() noexcept { return window_; }

    void begin(const at::RecordFunction& call) {
        const std::uint64_t window = window_.load(std::memory_order_relaxed);
        PerThread* thread = window == 0 ? nullptr : threads_.get(call.threadId());
        if (thread == nullptr)
            return;
        if (thread->window != window) {   // operators left open by an earlier window have been ended or lost
            thread->open.clear();
            thread->window = window;
        }
        const Name name = name_of(*thread, call.name());
        OperatorBegin row{.kind = call.scope() == at::RecordScope::USER_SCOPE ? OperatorKind::user_annotation
                                                                              : OperatorKind::cpu_op,
                          .name = name.id,
                          .sequence = call.seqNr(),
                          .forward_thread = call.seqNr() < 0 ? 0 : call.forwardThreadId()};
        if (options_.record_shapes && !call.inputs().empty())
            row.shapes = shapes_of(*thread, call);
        if (options_.with_flops && name.has_flops)
            row.flops = profiler::computeFlops(call.name(), profiler::saveExtraArgs(call));
        if (options_.with_stack)
            row.stack = thread->stacks.here(*recorder_, options_.max_frames);
        thread->open.push_back({&call, 0});
        thread->open.back().ticket = recorder_->begin_operator(row);
    }

    void end(const at::RecordFunction& call) {
        const std::int64_t at_ns = recorder_->now_ns();   // first, so that our own work is not in the operator's time
        // An operator that ends on another thread (a remote call) stays open, since its thread may be using the list.
        if (call.isAsync() && call.threadId() != at::RecordFunction::currentThreadId())
            return;
        const std::uint64_t window = window_.load(std::memory_order_relaxed);
        PerThread* thread = window == 0 ? nullptr : threads_.get(call.threadId());
        if (thread == nullptr || thread->window != window)
            return;
        auto& open = thread->open;
        const auto found = std::find_if(open.rbegin(), open.rend(), [&](const auto& at) { return at.call == &call; });
        if (found != open.rend())
            end_from(*thread, static_cast<std::size_t>(open.rend() - found) - 1, at_ns);
    }

    /// Ends all open operators of the calling thread.
    void end_all_here() {
        if (PerThread* thread = threads_.get(at::RecordFunction::currentThreadId()))
            if (thread->window == window_.load(std::memory_order_relaxed))
                end_from(*thread, 0, recorder_->now_ns());
    }

    profiler::ActiveProfilerType profilerType() override { return profiler::ActiveProfilerType::NONE; }

    void reportMemoryUsage(void* address, std::int64_t bytes, std::size_t total_allocated, std::size_t,
                           c10::Device device) override {
        if (window_.load(std::memory_order_relaxed) != 0)
            recorder_->push(AllocationRow{.at_ns = recorder_->now_ns(),
                                          .device = device.is_cpu() ? -1 : std::max<int>(device.index(), 0),
                                          .bytes = bytes,
                                          .address = reinterpret_cast<std::uint64_t>(address),
                                          .total_allocated = static_cast<std::int64_t>(total_allocated)});
    }

private:
    Name name_of(PerThread& thread, std::string_view text) {
        if (const auto found = thread.names.find(text); found != thread.names.end())
            return found->second;
        return thread.names.emplace(text, Name{recorder_->add_name(text), has_flops_formula(text)}).first->second;
    }
    std::uint32_t shapes_of(PerThread& thread, const at::RecordFunction& call) {
        thread.sizes.read(call.inputs());
        const std::string_view key = thread.sizes.key();
        if (const auto found = thread.shapes.find(key); found != thread.shapes.end())
            return found->second;
        return thread.shapes.emplace(key, recorder_->add_name(thread.sizes.text())).first->second;
    }
    /// Ends the calls from the innermost out to the one at `from`.
    void end_from(PerThread& thread, std::size_t from, std::int64_t at_ns) {
        for (; thread.open.size() > from; thread.open.pop_back())
            recorder_->end_operator(thread.open.back().ticket, at_ns);
    }

    OpProfilerOptions options_;
    Recorder* recorder_;
    std::atomic<std::uint64_t> window_ = 0;   // 0: not started; else the number of the start
    Threads threads_;
};

std::unique_ptr<at::ObserverContext> on_begin(const at::RecordFunction& call) {
    if (OpState* state = OpState::here())
        state->begin(call);
    return nullptr;
}

void on_end(const at::RecordFunction& call, at::ObserverContext*) {
    if (OpState* state = OpState::here())
        state->end(call);
}

}   // namespace

struct OpProfiler::ObservedThread::Impl {
    explicit Impl(std::shared_ptr<OpState> observed) : state{std::move(observed)} {
        if (c10::ThreadLocalDebugInfo::get(c10::DebugInfoKind::PROFILER_STATE) != nullptr)
            throw std::logic_error{"OpProfiler: a profiler of LibTorch already observes this thread"};
        c10::ThreadLocalDebugInfo::_push(c10::DebugInfoKind::PROFILER_STATE, state);
        try {
            observe();
        } catch (...) {   // otherwise this thread could never be observed again
            c10::ThreadLocalDebugInfo::_pop(c10::DebugInfoKind::PROFILER_STATE);
            throw;
        }
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl() {
        forget();
        // If user code has left other debug info on top, ours must stay below it; it does nothing any more.
        if (OpState::here() == state.get())
            try {
                c10::ThreadLocalDebugInfo::_pop(c10::DebugInfoKind::PROFILER_STATE);
            } catch (const std::exception&) {
            }
    }

    void observe() {
        if (handle == at::INVALID_CALLBACK_HANDLE)
            handle = at::addThreadLocalCallback(at::RecordFunctionCallback{&on_begin, &on_end}.needsInputs(
                state->options().record_shapes || state->options().with_flops));
    }
    void forget() {
        if (handle != at::INVALID_CALLBACK_HANDLE)
            at::removeCallback(std::exchange(handle, at::INVALID_CALLBACK_HANDLE));
    }

    std::shared_ptr<OpState> state;
    at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
};

OpProfiler::ObservedThread::ObservedThread(std::unique_ptr<Impl> impl) noexcept : impl_{std::move(impl)} {}
OpProfiler::ObservedThread::ObservedThread(ObservedThread&&) noexcept = default;
OpProfiler::ObservedThread::~ObservedThread() = default;

struct OpProfiler::Impl {
    std::shared_ptr<OpState> state;   // LibTorch's threads may keep it longer than the profiler lives
    std::uint64_t windows = 0;
    std::thread::id thread;
    std::unique_ptr<ObservedThread::Impl> observed;   // null: not started
};

OpProfiler::OpProfiler(Recorder& recorder, const OpProfilerOptions& options) : impl_{std::make_unique<Impl>()} {
    if (options.max_frames < 1 || options.max_frames > 256)
        throw std::invalid_argument{fmt::format("max_frames must be 1 to 256, got {}", options.max_frames)};
    impl_->state = std::make_shared<OpState>(recorder, options);
}

OpProfiler::~OpProfiler() {
    if (impl_->observed && impl_->thread != std::this_thread::get_id()) {
        impl_->state->window() = 0;
        impl_->observed->handle =
            at::INVALID_CALLBACK_HANDLE;   // only its own thread could remove it; it does nothing any more
        return;
    }
    stop();
}

bool OpProfiler::started() const noexcept { return impl_->observed != nullptr; }

void OpProfiler::start() {
    if (started())
        throw std::logic_error{"OpProfiler: started already"};
    if (impl_->state->options().with_stack)
        detail::CallStacks::prepare();
    impl_->observed = std::make_unique<ObservedThread::Impl>(impl_->state);
    impl_->thread = std::this_thread::get_id();
    impl_->state->window() = ++impl_->windows;
}

void OpProfiler::stop() {
    if (!started())
        return;
    if (impl_->thread != std::this_thread::get_id())
        throw std::logic_error{"OpProfiler: stop() was called on another thread than start()"};
    impl_->state->end_all_here();
    impl_->state->window() = 0;
    impl_->observed.reset();
}

void OpProfiler::collect_operators(bool collect) {
    if (!started())
        return;
    if (collect)
        impl_->observed->observe();
    else
        impl_->observed->forget();
}

OpProfiler::ObservedThread OpProfiler::observe_thread() {
    return ObservedThread{std::make_unique<ObservedThread::Impl>(impl_->state)};
}

}   // namespace drawpoint
