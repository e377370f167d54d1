#include "diagnosis/verdict/interventions.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace drawpoint {
namespace {

constexpr std::string_view stage_prefix = "stage:";
template <class Number>
Number times(Number now, Number factor, Number most) {
    return now > most / factor ? most : now * factor;
}

/// What the samples ask of `stage` in all.
Demand sum_of_stage(const RecordedRun& run, std::size_t stage) {
    Demand sum;
    for (const SampleDemand& sample : run.samples) {
        sum.cpu_ns += sample.stages[stage].cpu_ns;
        sum.wait_ns += sample.stages[stage].wait_ns;
    }
    return sum;
}

bool names(std::string_view name, std::string_view word) {
    return std::ranges::search(name, word, {}, [](char c) {
               return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
           }).begin() != name.end();
}

/// Named so, or the first one where it mostly waits for bytes.
bool is_read(const RecordedRun& run, std::size_t stage) {
    const std::string_view name = run.stages[stage];
    if (names(name, "read") || names(name, "fetch") || names(name, "download"))
        return true;
    const Demand sum = stage == 0 && !run.reads_ahead ? sum_of_stage(run, stage) : Demand{};
    return sum.wait_ns > sum.cpu_ns &&
           std::ranges::any_of(run.samples, [](const SampleDemand& sample) { return sample.bytes > 0; });
}

std::string word_of_stage(const RecordedRun& run, std::size_t stage, const Traits& traits) {
    if (names(run.stages[stage], "decode"))   // a fused image stage counts as decode, also where it reads for itself
        return "decode";
    return !is_read(run, stage) ? "transform" : traits.bandwidth ? "read-bandwidth" : "read-latency";
}

/// Whether a twentieth of the samples waits more in this stage than all others.
bool waits_rarely(const RecordedRun& run, std::size_t stage) {
    std::vector<std::int64_t> waits;
    for (const SampleDemand& sample : run.samples)
        waits.push_back(sample.stages[stage].wait_ns);
    const auto longest = waits.end() - static_cast<std::ptrdiff_t>(waits.size() / 20);
    std::ranges::nth_element(waits, longest);
    const auto sum = [](auto from, auto to) { return std::accumulate(from, to, 0.0); };
    return sum(longest, waits.end()) > sum(waits.begin(), longest);
}

/// Where samples wait off their core: reading, or in the stage where they do so most.
struct Waiting {
    double reading_ns = 0, else_ns = 0;
    std::size_t stage = 0;   // of the others, the longest
    [[nodiscard]] bool is_storage() const noexcept { return reading_ns >= else_ns; }
};

Waiting waiting_of(const RecordedRun& run) {
    Waiting found;
    for (const SampleDemand& sample : run.samples)
        found.reading_ns += static_cast<double>(sample.read.wait_ns);
    double longest_ns = 0;
    for (std::size_t stage = 0; stage < run.stages.size(); ++stage) {
        const auto wait_ns = static_cast<double>(sum_of_stage(run, stage).wait_ns);
        (is_read(run, stage) ? found.reading_ns : found.else_ns) += wait_ns;
        if (!is_read(run, stage) && wait_ns > longest_ns) {
            longest_ns = wait_ns;
            found.stage = stage;
        }
    }
    return found;
}

std::string word_of_waiting(const RecordedRun& run, const Traits& traits) {
    const Waiting waiting = waiting_of(run);
    if (waiting.is_storage())
        return traits.bandwidth ? "read-bandwidth" : "read-latency";
    return waits_rarely(run, waiting.stage) ? "stragglers" : word_of_stage(run, waiting.stage, traits);
}

template <class Rows, class Of>
bool any(const Rows& rows, Of of) {
    return std::ranges::any_of(rows, [&](const auto& row) { return of(row) > 0; });
}

}   // namespace

std::string word_of(std::string_view key, const RecordedRun& run, const Traits& traits) {
    const std::string reading = traits.bandwidth ? "read-bandwidth" : "read-latency";
    if (key.starts_with(stage_prefix)) {
        const auto stage = std::ranges::find(run.stages, key.substr(stage_prefix.size()));
        return stage == run.stages.end()
                   ? std::string{"transform"}
                   : word_of_stage(run, static_cast<std::size_t>(stage - run.stages.begin()), traits);
    }
    if (key == "waiting")
        return word_of_waiting(run, traits);
    if (key == "read" || key == "read_concurrency")
        return reading;
    if (traits.bursty_compute && (key == "prefetch_depth" || key == "variance"))
        return "bursty-consumer";
    constexpr std::array<std::pair<std::string_view, std::string_view>, 11> words{
        {{"collate", "collate"},
         {"compute", "compute-bound"},
         {"transfer", "transfer"},
         {"num_workers", "workers"},
         {"num_workers/2", "oversubscription"},
         {"prefetch_depth", "prefetch-depth"},
         {"memory_budget", "memory"},
         {"order", "order"},
         {"variance", "stragglers"},
         {"delivery", "delivery"},
         {"cores", "workers"}}};
    const auto found = std::ranges::find(words, key, &std::pair<std::string_view, std::string_view>::first);
    return std::string{found != words.end() ? found->second : "undecided"};
}

int cost_of(std::string_view key) noexcept {
    constexpr std::array<std::string_view, 6> settings{"num_workers/2",    "order",       "prefetch_depth",
                                                       "read_concurrency", "num_workers", "memory_budget"};
    const auto found = std::ranges::find(settings, key);
    return found == settings.end() ? 0 : static_cast<int>(found - settings.begin()) + 1;
}

std::vector<Intervention> unit_interventions(const RecordedRun& run, const Traits& traits) {
    std::vector<Intervention> all;
    const auto add = [&](std::string key, std::string change) -> Intervention& {
        Intervention& added = all.emplace_back();
        added.verdict = word_of(key, run, traits);
        added.can_be_set = cost_of(key) > 0;
        added.key = std::move(key);
        added.change = std::move(change);
        added.setting = run.setting;
        return added;
    };
    using namespace loader_limits;
    const LoaderSetting& now = run.setting;
    if (now.num_workers >= 2)
        add("num_workers/2", fmt::format("num_workers {} -> {}", now.num_workers, now.num_workers / 2))
            .setting.num_workers = now.num_workers / 2;
    if (now.order != OrderRule::out_of_order() && now.num_workers > 0)
        add("order", "order in -> out").setting.order = OrderRule::out_of_order();
    const std::size_t deeper = times<std::size_t>(now.prefetch_depth, 2, most_prefetch_depth);
    if (now.num_workers > 0 && deeper > now.prefetch_depth)
        add("prefetch_depth", fmt::format("prefetch_depth {} -> {}", now.prefetch_depth, deeper))
            .setting.prefetch_depth = deeper;
    const bool reads_ahead = any(run.samples, [](const SampleDemand& sample) { return sample.read.ns(); });
    const std::size_t reads = times<std::size_t>(now.read_concurrency, 4, most_read_concurrency);
    if (reads > now.read_concurrency && reads_ahead)
        add("read_concurrency", fmt::format("read_concurrency {} -> {}", now.read_concurrency, reads))
            .setting.read_concurrency = reads;
    const std::size_t more = std::max<std::size_t>(1, times<std::size_t>(now.num_workers, 2, most_workers));
    if (more > now.num_workers)
        add("num_workers", fmt::format("num_workers {} -> {}", now.num_workers, more)).setting.num_workers = more;
    const std::uint64_t budget = times<std::uint64_t>(now.memory_budget, 2, most_memory_budget);
    if (budget > now.memory_budget)
        add("memory_budget", "twice the memory_budget").setting.memory_budget = budget;
    // Reads ahead do the first one's work.
    for (std::size_t stage = run.reads_ahead ? 1 : 0; stage < run.stages.size(); ++stage)
        if (sum_of_stage(run, stage).ns() > 0)
            add(fmt::format("{}{}", stage_prefix, run.stages[stage]), run.stages[stage] + " twice as fast")
                .what.stages[stage] = 0.5;
    if (reads_ahead)
        add("read", "reads twice as fast").what.read = 0.5;
    if (any(run.batches, [](const BatchDemand& batch) { return batch.collate.ns(); }))
        add("collate", "collating twice as fast").what.collate = 0.5;
    if (any(run.batches, [](const BatchDemand& batch) { return batch.transfer_ns; }))
        add("transfer", "transfers twice as fast").what.transfer = 0.5;
    add("compute", "the loop's own step twice as fast").what.compute = 0.5;
    add("variance", "no sample slower than the mean").what.without_variance = true;
    if (any(run.samples, [](const SampleDemand& sample) {
            std::int64_t waits = sample.read.wait_ns;
            for (const Demand& stage : sample.stages)
                waits += stage.wait_ns;
            return waits;
        }))
        add("waiting", waiting_of(run).is_storage() ? "no sample waits for storage" : "no sample waits off its core")
            .what.without_waiting = true;
    add("cores", "a core for everyone").what.unlimited_cores = true;
    std::erase_if(all, [&](const Intervention& change) { return !fits_memory(run, change.setting); });
    return all;
}

}   // namespace drawpoint
