// Compares drawpoint's profiler of LibTorch operators with PyTorch's own (Kineto). Both record steps of one training
// run of a ResNet-18 in turns. Checks that the self times sum to the total, that both agree on the ten heaviest
// operators, in order (ties within 10 %) and in share (within 10 %), and that they count the same number of calls; and
// measures what recording an operator costs.
// JSON goes to stdout, a table to stderr; exits with 1 where the two disagree.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <ATen/ops/add.h>
#include <ATen/ops/ones.h>
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <torch/csrc/autograd/profiler_kineto.h>

#include <drawpoint/instrumentation/ledger/ledger_window.hpp>
#include <drawpoint/instrumentation/report/operators.hpp>
#include <drawpoint/instrumentation/statistics.hpp>
#include <drawpoint/loop/event_callback.hpp>
#include <drawpoint/loop/fit.hpp>
#include <drawpoint/loop/torch/learner.hpp>
#include <drawpoint/loop/torch/op_profiler.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/stages/generated_rows.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>

namespace {

using namespace drawpoint;
namespace kineto = torch::autograd::profiler;

struct Options {
    std::size_t image_size = 64, batch_size = 16, classes = 17, warm = 8, steps = 40;
    int threads = 1;
};

/// PyTorch's profiler. Its events become rows of one ledger per step, so that self times of both are computed alike.
class Kineto {
public:
    void start() {
        kineto::prepareProfiler(config_, activities_);
        kineto::enableProfiler(config_, activities_);
    }
    void stop() {
        Ledger& ledger = steps.emplace_back();
        std::unordered_map<std::string, std::uint32_t> names;
        for (const auto result = kineto::disableProfiler(); const kineto::KinetoEvent& event : result->events()) {
            const auto [name, is_new] = names.try_emplace(event.name(), static_cast<std::uint32_t>(names.size()));
            if (is_new)
                ledger.names.push_back(name->first);
            const bool region = event.scope() == static_cast<std::uint8_t>(at::RecordScope::USER_SCOPE);
            ledger.operators.push_back({.kind = region ? OperatorKind::user_annotation : OperatorKind::cpu_op,
                                        .name = name->second,
                                        .thread = static_cast<std::uint32_t>(event.startThreadId()),
                                        .begin_ns = static_cast<std::int64_t>(event.startNs()),
                                        .ns = static_cast<std::int64_t>(event.durationNs())});
        }
    }

    std::vector<Ledger> steps;

private:
    const torch::profiler::impl::ProfilerConfig config_{torch::profiler::impl::ProfilerState::KINETO};
    const std::set<torch::profiler::impl::ActivityType> activities_{torch::profiler::impl::ActivityType::CPU};
};

/// Switches between the two profilers at draws (ours, theirs, theirs, ours), so that neither gains when the machine
/// becomes slower or faster.
class Alternate final : public EventCallback<Alternate> {
public:
    Alternate(Recorder& recorder, OpProfiler& ours, Kineto& theirs, const Options& options)
        : recorder_{&recorder}, ours_{&ours}, theirs_{&theirs}, options_{&options} {}
    void before_draw(const LoopState& state) {
        stop();
        if (state.train_steps < options_->warm)
            return;
        const std::size_t step = state.train_steps - options_->warm;
        ours_run_ = step % 4 == 0 || step % 4 == 3;
        if (ours_run_)
            ours_->start();
        else
            theirs_->start();
        begin_ns_ = recorder_->now_ns();
    }
    void after_train() { stop(); }

    std::vector<std::pair<std::int64_t, std::int64_t>> windows;   // recorded by ours

private:
    void stop() {
        if (begin_ns_ == no_stamp)
            return;
        if (ours_run_) {
            ours_->stop();
            windows.emplace_back(begin_ns_, recorder_->now_ns());
        } else {
            theirs_->stop();
        }
        begin_ns_ = no_stamp;
    }
    Recorder* recorder_;
    OpProfiler* ours_;
    Kineto* theirs_;
    const Options* options_;
    bool ours_run_ = false;
    std::int64_t begin_ns_ = no_stamp;   // of the present step; no_stamp: it is not recorded
};

struct Operator {
    std::vector<double> fastest_ns;   // self time of each of a step's calls, in the step where it was shortest
    std::uint64_t calls = 0;          // in all steps
    [[nodiscard]] double step_ns() const { return std::accumulate(fastest_ns.begin(), fastest_ns.end(), 0.0); }
};

/// Time per step that one of the profilers recorded in each operator. All steps do the same work, and disturbances only
/// make a call longer, so the fastest time of a call over all steps is taken.
class Operators {
public:
    explicit Operators(const std::vector<Ledger>& steps) {
        for (const Ledger& ledger : steps) {
            std::map<std::string, std::size_t> calls;   // of this step, so far
            for (const OperatorEvent& event : events(ledger)) {
                self_ns += event.self_cpu_ns;
                total_ns += event.parent == nothing ? event.cpu_ns : 0;
                const OperatorRow& row = ledger.operators[event.row];
                if (row.kind != OperatorKind::cpu_op)
                    continue;
                Operator& entry = of[ledger.names[row.name]];
                const std::size_t call = calls[ledger.names[row.name]]++;
                const auto ns = static_cast<double>(event.self_cpu_ns);
                if (call == entry.fastest_ns.size())
                    entry.fastest_ns.push_back(ns);
                entry.fastest_ns[call] = std::min(entry.fastest_ns[call], ns);
                ++entry.calls;
            }
        }
        for (const auto& [name, row] : of)
            sum_ns_ += row.step_ns();
    }
    [[nodiscard]] double step_ns(const std::string& name) const {
        return of.contains(name) ? of.at(name).step_ns() : 0;
    }
    [[nodiscard]] std::uint64_t calls(const std::string& name) const {
        return of.contains(name) ? of.at(name).calls : 0;
    }
    /// Percent of the sum of all operators.
    [[nodiscard]] double share(const std::string& name) const { return 100 * step_ns(name) / sum_ns_; }
    [[nodiscard]] std::vector<std::string> heaviest(std::size_t count) const {
        std::vector<std::string> names;
        for (const auto& [name, row] : of)
            names.push_back(name);
        std::ranges::sort(names, std::greater{}, [&](const auto& name) { return step_ns(name); });
        names.resize(std::min(names.size(), count));
        return names;
    }

    std::map<std::string, Operator> of;
    std::int64_t self_ns = 0, total_ns = 0;   // sum of self times; sum of the outermost calls' durations

private:
    double sum_ns_ = 0;
};

struct Recorded {
    std::vector<Ledger> ours, theirs;   // one ledger per step
    std::uint64_t dropped = 0;
};

Recorded train(const Options& options) {
    Recorder recorder;
    Runtime runtime{{.max_threads = 1}, recorder};
    const SyntheticImages images{options.batch_size * (options.warm + 2 * options.steps), options.classes,
                                 options.image_size};
    SequentialSampler sampler{images.size()};
    DataLoader loader{runtime, images, sampler, {.batch_size = options.batch_size, .num_workers = 1}};
    TorchLearner learner{resnet18(options.classes),
                         {.optimizer = Optimizer::sgd, .learning_rate = 0.01, .threads = options.threads}};
    OpProfiler ours{recorder};
    Kineto theirs;
    Alternate alternate{recorder, ours, theirs, options};
    CallbackList callbacks;
    callbacks.add(alternate);
    FitOptions fit_options;
    run(runtime, fit(learner, loader, fit_options, callbacks, recorder));
    const Ledger ledger = recorder.ledger();
    Recorded recorded{.ours = {}, .theirs = std::move(theirs.steps), .dropped = ledger.dropped_records()};
    for (const auto& [from_ns, to_ns] : alternate.windows)
        recorded.ours.push_back(window(ledger, from_ns, to_ns));
    return recorded;
}

/// Time of a small operator, ns, on average over calls that follow one another.
double ns_per_operator() {
    constexpr int calls = 2000;
    const at::Tensor a = at::ones({8}), b = at::ones({8});
    (void)at::add(a, b);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i)
        (void)at::add(a, b);
    const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - begin;
    return time.count() / calls;
}

double ns_per_operator(const OpProfilerOptions& options) {
    Recorder recorder;
    OpProfiler profiler{recorder, options};
    profiler.start();
    return ns_per_operator();
}

double ns_per_operator(Kineto& kineto) {
    kineto.start();
    const double ns = ns_per_operator();
    kineto.stop();
    kineto.steps.clear();
    return ns;
}

/// By how much longer a way takes than not to record, round by round: median and quartiles, ns.
nlohmann::ordered_json added(std::vector<double> recorded, const std::vector<double>& off) {
    std::ranges::transform(recorded, off, recorded.begin(), std::minus{});
    const auto at = [&](double share) { return statistics::quantile(recorded, share); };
    return {{"median", at(0.5)}, {"low", at(0.25)}, {"high", at(0.75)}};
}

/// What an operator takes that is not recorded, and what each way to record it adds. In each round each has a turn, in
/// an order drawn anew.
nlohmann::ordered_json operator_costs() {
    constexpr std::size_t rounds = 200;
    Kineto kineto;
    std::vector<double> off, ours, with_shapes, by_torch;
    std::vector<std::function<void()>> turns{
        [&] { off.push_back(ns_per_operator()); }, [&] { ours.push_back(ns_per_operator(OpProfilerOptions{})); },
        [&] { with_shapes.push_back(ns_per_operator(OpProfilerOptions{.record_shapes = true})); },
        [&] { by_torch.push_back(ns_per_operator(kineto)); }};
    std::mt19937_64 random{1};
    for (std::size_t round = 0; round < rounds; ++round) {
        std::ranges::shuffle(turns, random);
        for (const auto& turn : turns)
            turn();
    }
    return {{"rounds", rounds},
            {"not_recorded", statistics::quantile(off, 0.5)},
            {"recorded_adds", added(ours, off)},
            {"with_shapes_adds", added(with_shapes, off)},
            {"torch_adds", added(by_torch, off)}};
}

}   // namespace

int main(int argc, char** argv) {
    ::setenv("KINETO_LOG_LEVEL", "6", 0);   // else it logs every start and stop
    Options options;
    CLI::App app{"LibTorch's operators: this profiler against PyTorch's own"};
    app.add_option("--image-size", options.image_size);
    app.add_option("--batch-size", options.batch_size);
    app.add_option("--warm", options.warm, "steps before the recorded ones");
    app.add_option("--steps", options.steps, "steps recorded by each; an even number is fair to both")
        ->check(CLI::PositiveNumber);
    app.add_option("--threads", options.threads, "of LibTorch's operators");
    CLI11_PARSE(app, argc, argv);

    const Recorded recorded = train(options);
    const Operators ours{recorded.ours}, theirs{recorded.theirs};
    const std::vector<std::string> top = theirs.heaviest(10);
    bool order = true, shares = true, calls = true;
    for (std::size_t i = 0; i < top.size(); ++i)
        // the order may differ only where one of the profilers sees a tie
        for (std::size_t j = i + 1; j < top.size(); ++j)
            order = order && (ours.share(top[j]) <= 1.1 * ours.share(top[i]) ||
                              theirs.share(top[i]) <= 1.1 * theirs.share(top[j]));
    for (const std::string& name : ours.heaviest(10))
        order = order && 1.1 * theirs.share(name) >= theirs.share(top.back());
    nlohmann::ordered_json rows;
    fmt::print(stderr, "{:<50}{:>9}{:>9}{:>8}{:>11}{:>8}{:>8}\n", "operator (self time)", "ours %", "torch %", "ratio",
               "ns ratio", "calls", "torch");
    for (const std::string& name : top) {
        const double ratio = ours.share(name) / theirs.share(name);
        shares = shares && ratio >= 0.9 && ratio <= 1.1;
        calls = calls && ours.calls(name) == theirs.calls(name);
        fmt::print(stderr, "{:<50}{:>9.2f}{:>9.2f}{:>8.3f}{:>11.3f}{:>8}{:>8}\n", name, ours.share(name),
                   theirs.share(name), ratio, ours.step_ns(name) / theirs.step_ns(name), ours.calls(name),
                   theirs.calls(name));
        rows.push_back({{"operator", name},
                        {"share", ours.share(name)},
                        {"torch_share", theirs.share(name)},
                        {"step_ns", ours.step_ns(name)},
                        {"torch_step_ns", theirs.step_ns(name)},
                        {"calls", ours.calls(name)},
                        {"torch_calls", theirs.calls(name)}});
    }
    for (const auto& [name, row] : theirs.of)
        calls = calls && ours.calls(name) == row.calls;
    calls = calls && ours.of.size() == theirs.of.size();
    const bool sums = ours.self_ns == ours.total_ns && recorded.dropped == 0;
    fmt::print(stderr, "self times sum to the total: {} ({} of {} ns, {} records dropped; PyTorch's: {} of {} ns)\n",
               sums, ours.self_ns, ours.total_ns, recorded.dropped, theirs.self_ns, theirs.total_ns);
    fmt::print(stderr, "order: {}; shares within 10 %: {}; calls of all {} operators equal: {}\n", order, shares,
               theirs.of.size(), calls);

    const nlohmann::ordered_json costs = operator_costs();
    fmt::print(stderr, "an operator, ns: {}\n", costs.dump());
    const bool agrees = sums && order && shares && calls;
    const nlohmann::ordered_json json{{"suite", "operators"},
                                      {"image_size", options.image_size},
                                      {"batch_size", options.batch_size},
                                      {"steps", options.steps},
                                      {"heaviest", rows},
                                      {"self_ns", ours.self_ns},
                                      {"total_ns", ours.total_ns},
                                      {"self_times_sum", sums},
                                      {"order_agrees", order},
                                      {"shares_agree", shares},
                                      {"calls_agree", calls},
                                      {"operator_ns", costs},
                                      {"agrees", agrees}};
    fmt::print("{}\n", json.dump(2));
    return agrees ? 0 : 1;
}
