// What on_error does with samples that cannot be made, against a model that is a list of batches.
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/pipeline/loader/core/collate.hpp>

#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

using test::Bench;
using test::NumberedSource;
using test::says;

enum class Making : std::uint8_t { in_place, runs, collated };
constexpr std::array makings{Making::in_place, Making::runs, Making::collated};
constexpr std::array policies{OnError::raise, OnError::skip, OnError::substitute};

/// Samples of two words; those in `fails_in` fail in that stage, counted from 1.
class Staged final : public SampleSource {
public:
    Staged(std::size_t n, Making making) : n_{n}, making_{making} {}
    std::map<std::uint64_t, std::uint32_t> fails_in;

    std::size_t size() const noexcept override { return n_; }
    SampleLayout layout() const noexcept override { return {.type = ScalarType::int64, .rank = 1, .shape = {2}}; }
    std::vector<std::string> stages() const override {
        return making_ == Making::runs ? std::vector<std::string>{"rows"}
                                       : std::vector<std::string>{"read", "decode", "crop"};
    }
    std::string path(std::uint64_t index) const override { return "staged/" + std::to_string(index); }
    std::unique_ptr<WorkerScratch> make_scratch() const override { return std::make_unique<WorkerScratch>(); }
    void fill(SampleTask& task, WorkerScratch&) const override {
        const auto fails = fails_in.find(task.index);
        for (std::uint32_t stage = 1; stage <= 3; ++stage) {
            task.stages[stage - 1] = {task.clock ? task.clock->now_ns() : 0, 0};
            task.stage_count = stage;
            std::memset(task.data.data(), 0xEE, task.data.size());
            if (fails != fails_in.end() && fails->second == stage)
                throw std::runtime_error{"stage " + std::to_string(stage)};
        }
        write(task.index, task.data.data(), *task.target);
    }
    bool fills_runs() const noexcept override { return making_ == Making::runs; }
    void fill_run(SampleRun& run, WorkerScratch&) const override {
        // Nothing is whole until all is, so those before a sample that fails must be made again.
        std::memset(run.data, 0xEE, run.indices.size() * 16);
        for (const std::uint64_t index : run.indices)
            if (fails_in.contains(index))
                throw std::runtime_error{"stage 1"};
        for (std::size_t i = 0; i < run.indices.size(); ++i)
            write(run.indices[i], run.data + i * 16, run.targets[i]);
        run.bytes_read = run.indices.size() * 16;
    }
    static void write(std::uint64_t index, std::byte* data, std::int64_t& target) {
        const std::array<std::uint64_t, 2> words{index * 17 + 5, ~index};
        std::memcpy(data, words.data(), 16);
        target = static_cast<std::int64_t>(index) - 7;
    }

private:
    std::size_t n_;
    Making making_;
};

std::shared_ptr<const Collate> stacked() {
    return collate_with("stack", [](const FinishedSamples& finished, CollatedBatch& batch) {
        const std::array shape{static_cast<std::int64_t>(finished.samples.size()), std::int64_t{2}};
        std::span<std::byte> all = batch.add("data", ScalarType::int64, shape);
        for (const SampleBuffer& sample : finished.samples) {
            std::ranges::copy(sample.data(), all.begin());
            all = all.subspan(16);
        }
    });
}

/// Whether the batch holds just these samples, whole.
bool holds(const Batch& batch, const std::vector<std::uint64_t>& indices, Making making) {
    const auto data = making == Making::collated ? batch.part("data").data() : std::span<const std::byte>{batch.data()};
    if (batch.size() != indices.size() || !std::ranges::equal(batch.indices(), indices) ||
        data.size() != indices.size() * 16)
        return false;
    for (std::size_t i = 0; i < indices.size(); ++i) {
        std::array<std::byte, 16> expected{};
        std::int64_t target = 0;
        Staged::write(indices[i], expected.data(), target);
        if (std::memcmp(expected.data(), data.data() + i * 16, 16) != 0 || batch.targets()[i] != target)
            return false;
    }
    return true;
}

/// What a draw must give: a batch of these samples, or the failed ones in the order of their indices.
struct Expected {
    std::vector<std::uint64_t> samples, failed;
    bool raises = false;
};

std::vector<Expected> expected_of(std::size_t n, std::size_t batch_size, const Staged& source, OnError policy) {
    std::vector<Expected> draws;
    for (std::size_t first = 0; first < n; first += batch_size) {
        Expected draw;
        const std::size_t end = std::min(n, first + batch_size);
        for (std::size_t i = first; i < end; ++i)
            (source.fails_in.contains(i) ? draw.failed : draw.samples).push_back(i);
        draw.raises = !draw.failed.empty() &&
                      (policy == OnError::raise || (policy == OnError::substitute && draw.samples.empty()));
        if (policy == OnError::substitute && !draw.raises) {
            const std::vector<std::uint64_t> whole = std::exchange(draw.samples, {});
            for (std::size_t i = first; i < end; ++i) {
                const auto next = std::ranges::lower_bound(whole, i);
                draw.samples.push_back(next == whole.end() ? whole.front() : *next);
            }
        }
        if (draw.raises || !draw.samples.empty())
            draws.push_back(std::move(draw));
    }
    return draws;
}

/// Draws a pass and compares it with the model. Returns what was wrong first.
std::string check_pass(const Staged& source, Making making, OnError policy, std::size_t workers) {
    constexpr std::size_t batch_size = 3;
    Bench bench{true};
    const SequentialSampler sampler{source.size()};
    const auto collate = stacked();
    DataLoader loader{bench.runtime,
                      source,
                      sampler,
                      {.batch_size = batch_size,
                       .num_workers = workers,
                       .on_error = policy,
                       .collate = making == Making::collated ? collate.get() : nullptr}};
    auto pass = loader.epoch(0);
    for (const Expected& expected : expected_of(source.size(), batch_size, source, policy)) {
        try {
            const auto batch = pass.next_blocking();
            if (expected.raises)
                return "no exception";
            if (!batch || !holds(*batch, expected.samples, making))
                return "another batch";
        } catch (const SampleError& error) {
            if (!expected.raises)
                return std::string{"unexpected: "} + error.what();
            std::vector<std::uint64_t> failed{error.index()};
            std::vector<std::string> stages{error.stage()};
            for (const SampleError& other : error.others()) {
                failed.push_back(other.index());
                stages.push_back(other.stage());
                if (other.path() != "staged/" + std::to_string(other.index()))
                    return "path of another one";
            }
            if (failed != expected.failed)
                return "other samples failed";
            for (std::size_t i = 0; i < failed.size(); ++i)
                if (stages[i] != source.stages()[source.fails_in.at(failed[i]) - 1])
                    return "stage " + stages[i];
            try {
                std::rethrow_exception(error.cause());
            } catch (const std::runtime_error& cause) {
                if (cause.what() != "stage " + std::to_string(source.fails_in.at(error.index())))
                    return std::string{"cause "} + cause.what();
            }
        }
    }
    if (pass.next_blocking())
        return "a batch too many";
    const LoaderCounters counters = loader.counters();
    const Ledger ledger = bench.recorder->ledger();
    if (ledger.failures.size() != source.fails_in.size())
        return "failures recorded: " + std::to_string(ledger.failures.size());
    std::size_t raised = 0;
    for (const Expected& expected : expected_of(source.size(), batch_size, source, policy))
        raised += expected.raises ? expected.failed.size() : 0;
    const std::uint64_t settled = source.fails_in.size() - raised;
    if (counters.samples_skipped != (policy == OnError::skip ? settled : 0) ||
        counters.samples_substituted != (policy == OnError::substitute ? settled : 0))
        return "counters";
    return {};
}

BOOST_AUTO_TEST_SUITE(data_loader_errors)

BOOST_AUTO_TEST_CASE(an_error_in_any_stage_of_any_sample_comes_with_its_batch_under_each_policy) {
    for (const Making making : makings)
        for (const std::size_t workers : {0u, 2u})
            for (const OnError policy : policies)
                for (std::uint64_t wrong = 0; wrong < 8; ++wrong)
                    for (std::uint32_t stage = 1; stage <= (making == Making::runs ? 1u : 3u); ++stage) {
                        Staged source{8, making};
                        source.fails_in[wrong] = stage;
                        BOOST_TEST(check_pass(source, making, policy, workers) == "",
                                   name_of(policy) << ": sample " << wrong << ", stage " << stage);
                    }
}

BOOST_AUTO_TEST_CASE(of_two_errors_and_of_every_set_of_errors_none_is_swallowed) {
    for (const Making making : makings)
        for (const OnError policy : policies)
            for (std::uint32_t set = 0; set < 1u << 8; ++set) {
                Staged source{8, making};
                for (std::uint64_t index = 0; index < 8; ++index)
                    if ((set >> index & 1) != 0)
                        source.fails_in[index] =
                            making == Making::runs ? 1 : 1 + (set + static_cast<std::uint32_t>(index)) % 3;
                BOOST_TEST(check_pass(source, making, policy, set % 3) == "", name_of(policy) << ": set " << set);
            }
}

BOOST_AUTO_TEST_CASE(more_failures_than_max_errors_are_raised_where_they_are_drawn) {
    for (const std::size_t workers : {0u, 3u}) {
        Bench bench;
        Staged source{30, Making::in_place};
        for (const std::uint64_t index : {2u, 4u, 14u, 16u})
            source.fails_in[index] = 2;
        const SequentialSampler sampler{30};
        DataLoader loader{bench.runtime,
                          source,
                          sampler,
                          {.batch_size = 5, .num_workers = workers, .on_error = OnError::skip, .max_errors = 3}};
        for (std::size_t epoch = 0; epoch < 2; ++epoch) {   // each pass counts from 0
            auto pass = loader.epoch(epoch);
            BOOST_TEST(pass.next_blocking()->size() == 3u);
            BOOST_TEST(pass.next_blocking()->size() == 5u);
            BOOST_TEST(pass.next_blocking()->size() == 4u);
            BOOST_CHECK_EXCEPTION((void)pass.next_blocking(), SampleError,
                                  says("sample 16 (staged/16): decode: stage 2 (samples of this pass that failed: 4, "
                                       "max_errors = 3)"));
            BOOST_TEST(pass.next_blocking()->size() == 5u);
            BOOST_TEST(pass.next_blocking()->size() == 5u);
            BOOST_TEST(!pass.next_blocking().has_value());
        }
    }
    // Without max_errors: 10, or 0.1 % of the pass.
    for (const auto& [size, most] : {std::pair{100u, 10u}, {20'000u, 20u}}) {
        Bench bench;
        Staged source{size, Making::runs};
        for (std::uint64_t index = 0; index <= most; ++index)
            source.fails_in[index] = 1;
        const SequentialSampler sampler{size};
        DataLoader loader{bench.runtime, source, sampler, {.batch_size = 1, .on_error = OnError::skip}};
        auto pass = loader.epoch(0);
        BOOST_CHECK_EXCEPTION((void)pass.next_blocking(), SampleError,
                              [&](const SampleError& error) { return error.index() == most; });
        BOOST_TEST(pass.next_blocking()->indices()[0] == most + 1);
    }
}

BOOST_AUTO_TEST_CASE(batches_of_which_nothing_is_left_are_passed_over_while_workers_fill_their_slots_again) {
    constexpr std::uint64_t samples = 20'000;
    Bench bench;
    Staged source{samples, Making::in_place};
    for (std::uint64_t index = 0; index < samples; index += 2)
        source.fails_in[index] = 1;
    const SequentialSampler sampler{samples};
    const LoaderOptions options{
        .batch_size = 1, .num_workers = 3, .prefetch_depth = 2, .on_error = OnError::skip, .max_errors = samples};
    DataLoader loader{bench.runtime, source, sampler, options};
    auto pass = loader.epoch(0);
    std::uint64_t expected = 1, wrong = 0;
    while (const auto batch = pass.next_blocking()) {
        wrong += batch->size() != 1 || batch->indices()[0] != expected;
        expected += 2;
    }
    BOOST_TEST(wrong == 0u);
    BOOST_TEST(expected == samples + 1);
}

BOOST_AUTO_TEST_CASE(what_a_collate_function_throws_is_raised_under_each_policy_also_beside_a_sample_that_is_left_out) {
    for (const OnError policy : policies)
        for (const bool one_fails : {false, true}) {
            Bench bench;
            Staged source{6, Making::collated};
            if (one_fails)
                source.fails_in[1] = 2;
            const auto collate = collate_with(
                "never", [](const FinishedSamples&, CollatedBatch&) { throw std::runtime_error{"no shape"}; });
            const SequentialSampler sampler{6};
            DataLoader loader{
                bench.runtime, source, sampler, {.batch_size = 3, .on_error = policy, .collate = collate.get()}};
            auto pass = loader.epoch(0);
            const bool raises_sample = one_fails && policy == OnError::raise;
            BOOST_CHECK_EXCEPTION(
                (void)pass.next_blocking(), SampleError,
                says(raises_sample ? "sample 1 (staged/1): decode: stage 2" : "sample 0: collate: no shape"));
            BOOST_CHECK_EXCEPTION((void)pass.next_blocking(), SampleError, says("sample 3: collate: no shape"));
            BOOST_TEST(!pass.next_blocking().has_value());
        }
}

BOOST_AUTO_TEST_CASE(a_batch_without_its_failed_samples_is_recorded_as_taken_and_a_raised_one_as_failed) {
    for (const OnError policy : policies)
        for (const std::size_t workers : {0u, 2u}) {
            Bench bench{true};
            Staged source{12, Making::in_place};
            for (const std::uint64_t index : {1u, 6u, 7u, 8u})   // one of the first batch, all of the third
                source.fails_in[index] = 2;
            const SequentialSampler sampler{12};
            DataLoader loader{bench.runtime,
                              source,
                              sampler,
                              {.batch_size = 3, .num_workers = workers, .on_error = policy, .max_errors = 9}};
            auto pass = loader.epoch(0);
            std::vector<std::uint32_t> sizes;
            for (bool more = true; more;) {
                try {
                    const auto batch = pass.next_blocking();
                    more = batch.has_value();
                    if (more)
                        sizes.push_back(static_cast<std::uint32_t>(batch->size()));
                } catch (const SampleError&) {
                    sizes.push_back(0);
                }
            }
            const Ledger ledger = bench.recorder->ledger();
            BOOST_TEST_REQUIRE(ledger.batches.size() == 4u);
            const bool raises = policy == OnError::raise, skips = policy == OnError::skip;
            using Sizes = std::vector<std::uint32_t>;
            BOOST_TEST(sizes == (raises  ? Sizes{0, 3, 0, 3}
                                 : skips ? Sizes{2, 3, 3}
                                         : Sizes{3, 3, 0, 3}),
                       boost::test_tools::per_element());
            const std::vector<bool> taken{!raises, true, skips, true};
            for (std::size_t i = 0; i < 4; ++i)
                BOOST_TEST((ledger.batches[i].status == (taken[i] ? BatchStatus::taken : BatchStatus::failed)));
            if (skips)
                BOOST_TEST((ledger.batches[0].size == 2u && ledger.batches[2].size == 0u));
            for (const ErrorSummary& error : summarize(ledger).errors) {
                const std::size_t batch = error.index / 3;
                BOOST_TEST(error.handling == (!taken[batch] ? "" : skips ? "skip" : "substitute"));
            }
        }
}

BOOST_AUTO_TEST_CASE(suspended_draws_pass_over_batches_of_which_nothing_is_left) {
    Bench bench;
    Staged source{40, Making::in_place};
    for (std::uint64_t index = 0; index < 40; ++index)
        if (index / 2 % 4 != 3)
            source.fails_in[index] = 1;
    const SequentialSampler sampler{40};
    DataLoader loader{bench.runtime,
                      source,
                      sampler,
                      {.batch_size = 2, .prefetch_depth = 1, .on_error = OnError::skip, .max_errors = 40}};
    std::vector<std::size_t> numbers;
    constexpr std::chrono::seconds long_enough{100};
    auto body = [&](bool with_timeout) -> Awaitable<void> {
        auto pass = loader.epoch(0);
        for (;;) {
            if (with_timeout) {
                const auto batch = co_await pass.next_for(long_enough);
                if (!batch)
                    break;
                numbers.push_back(batch->number());
            } else {
                const auto batch = co_await pass.next();
                if (!batch)
                    break;
                numbers.push_back(batch->number());
            }
        }
    };
    const std::vector<std::size_t> expected{3, 7, 11, 15, 19};
    for (const bool with_timeout : {false, true}) {
        numbers.clear();
        run(bench.runtime, body(with_timeout));
        BOOST_TEST(numbers == expected);
    }
}

BOOST_AUTO_TEST_CASE(samples_that_were_skipped_are_not_counted_as_taken) {
    Bench bench;
    Staged source{6, Making::in_place};
    source.fails_in[1] = 1;
    const SequentialSampler sampler{6};
    DataLoader loader{bench.runtime, source, sampler, {.batch_size = 4, .on_error = OnError::skip, .max_errors = 1}};
    auto pass = loader.epoch(0);
    BOOST_TEST(pass.next_blocking()->size() == 3u);
    BOOST_TEST(loader.counters().samples_taken == 3u);
    BOOST_TEST(pass.next_blocking()->size() == 2u);
    BOOST_TEST(loader.counters().samples_taken == 5u);
}

BOOST_AUTO_TEST_CASE(the_policy_is_a_fact_and_an_unknown_one_is_refused) {
    Bench bench{true};
    const Staged source{4, Making::in_place};
    const SequentialSampler sampler{4};
    const DataLoader loader{bench.runtime, source, sampler, {.on_error = OnError::substitute}, "train"};
    const Ledger ledger = bench.recorder->ledger();
    BOOST_TEST(ledger.fact(std::string{facts::on_error_prefix} + "train").value_or("") == "substitute");
    BOOST_CHECK_EXCEPTION((DataLoader{bench.runtime, source, sampler, {.on_error = static_cast<OnError>(3)}}),
                          std::invalid_argument, says("on_error must be raise, skip or substitute, got 3"));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
