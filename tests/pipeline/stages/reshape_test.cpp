#include <drawpoint/pipeline/stages/stage.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/loader/blocking.hpp>
#include <drawpoint/pipeline/sampling/bucket_sampler.hpp>
#include <drawpoint/pipeline/stages/cached.hpp>
#include <drawpoint/pipeline/loader/core/collate.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/stages/generated_rows.hpp>
#include <drawpoint/pipeline/stages/inject.hpp>

#include "support/coro_test.hpp"
#include "support/temporary_folder.hpp"

BOOST_AUTO_TEST_SUITE(reshape)

using namespace drawpoint;

namespace {

constexpr SampleLayout numbers{ScalarType::int64, 1, {0}};

/// Sample i has i % 9 numbers, from 10 i on.
auto counted(std::size_t n) {
    return from_function(n, numbers, "count", [](SampleView& sample) {
        sample.reshape({static_cast<std::int64_t>(sample.index % 9)});
        const auto values = sample.values<std::int64_t>();
        std::iota(values.begin(), values.end(), static_cast<std::int64_t>(10 * sample.index));
        *sample.target = static_cast<std::int64_t>(sample.index);
    });
}

std::vector<std::int64_t> values_of(const BatchPart& part) {
    const auto* const first = reinterpret_cast<const std::int64_t*>(part.data().data());
    return {first, first + part.data().size() / 8};
}

/// The error with which a loader refuses the first batch of `source`.
std::string error_of(const SampleSource& source, bool collates = true) {
    const auto recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    const SequentialSampler sampler{source.size()};
    const auto first = collate_with("first", [](const FinishedSamples& samples, CollatedBatch& batch) {
        const SampleLayout& layout = samples.samples.front().layout();
        batch.add("data", layout.type, std::span{layout.shape}.first(layout.rank));
    });
    try {
        DataLoader loader{runtime, source, sampler, {.num_workers = 0, .collate = collates ? first.get() : nullptr}};
        auto pass = loader.epoch(0);
        (void)pass.next_blocking();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "made";
}

}   // namespace

BOOST_AUTO_TEST_CASE(a_function_makes_samples_of_any_length_and_they_come_padded_in_buckets) {
    const auto recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    const auto source = counted(100);
    std::vector<std::uint32_t> lengths;
    for (std::uint32_t i = 0; i < 100; ++i)
        lengths.push_back(i % 9);
    const BucketSampler order{lengths, 10, 3, {.bucket_batches = 5}};
    const PadCollate pad{numbers, {.value = -1}};
    DataLoader loader{runtime, source, order, {.batch_size = 10, .num_workers = 2, .collate = &pad}};
    std::size_t places = 0, words = 0;
    for (auto& batch : blocking(loader)) {
        const std::vector<std::int64_t> data = values_of(batch.part("data"));
        const std::size_t longest = data.size() / batch.size();
        places += data.size();
        for (std::size_t i = 0; i < data.size(); ++i) {
            const std::uint64_t index = batch.indices()[i / longest], at = i % longest;
            BOOST_TEST(data[i] == (at < index % 9 ? static_cast<std::int64_t>(10 * index + at) : -1));
            words += data[i] != -1;
        }
    }
    std::vector<std::uint64_t> drawn(100);
    order.order(0, drawn);
    BOOST_TEST(1 - static_cast<double>(words) / static_cast<double>(places) == padding_share(drawn, lengths, 10),
               boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(an_injected_fault_makes_the_stage_collate_as_many_times_as_long) {
    ManualClock clock{1000};
    Recorder recorder{{}, AnyClock{clock}};
    Runtime runtime{{}, recorder};
    const auto source = counted(18);
    const PadCollate pad{numbers};
    const auto takes_30_ns = collate_with("pad", [&](const FinishedSamples& samples, CollatedBatch& batch) {
        clock.advance(std::chrono::nanoseconds{30});
        pad.collate(samples, batch);
    });
    const InjectedWaits waits{{}, [&](std::chrono::nanoseconds time) { clock.advance(time); }};
    const auto slow = inject(takes_30_ns, {parse_injection("collate=x5")}, waits, AnyClock{clock});
    const SequentialSampler order{18};
    DataLoader loader{runtime, source, order, {.batch_size = 9, .num_workers = 0, .collate = slow.get()}};
    for (auto& batch : blocking(loader))
        BOOST_TEST(values_of(batch.part("lengths")).size() == 9u);
    const Ledger ledger = recorder.ledger();
    BOOST_TEST(ledger.batches.size() == 2u);
    for (const BatchRow& row : ledger.batches)
        BOOST_TEST(row.collate_end_ns - row.collate_begin_ns == 150);
}

BOOST_AUTO_TEST_CASE(a_stage_behind_sees_the_sample_as_it_is_and_may_shorten_it) {
    const auto recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    const auto source = counted(18) |
                        stage("at most 4",
                              [](SampleView& sample) {
                                  BOOST_REQUIRE(sample.layout->shape[0] == static_cast<std::int64_t>(sample.index % 9));
                                  if (sample.layout->shape[0] > 4)
                                      sample.reshape({4});
                              }) |
                        stage("negate", [](SampleView& sample) {
                            for (std::int64_t& value : sample.values<std::int64_t>())
                                value = -value;
                        });
    const SequentialSampler order{18};
    const PadCollate pad{numbers, {.mask = false}};
    DataLoader loader{runtime, source, order, {.batch_size = 9, .num_workers = 0, .collate = &pad}};
    std::size_t first = 0;
    for (auto& batch : blocking(loader)) {
        const std::vector<std::int64_t> data = values_of(batch.part("data")),
                                        lengths = values_of(batch.part("lengths"));
        BOOST_TEST_REQUIRE(data.size() == 9u * 4);
        for (std::size_t i = 0; i < 9; ++i) {
            BOOST_TEST(lengths[i] == static_cast<std::int64_t>(std::min<std::size_t>(i, 4)));
            for (std::size_t at = 0; at < 4; ++at)
                BOOST_TEST(data[4 * i + at] == (at < i ? -static_cast<std::int64_t>(10 * (first + i) + at) : 0));
        }
        first += 9;
    }
    BOOST_TEST(first == 18u);
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_fails_the_sample_by_name) {
    const auto with = [](const SampleLayout& layout, auto make) { return from_function(1, layout, "make", make); };
    const SampleLayout pair{ScalarType::float32, 1, {2}};
    BOOST_TEST(error_of(with(pair, [](SampleView& sample) { sample.reshape({2}); }), false) ==
               "sample 0: make: SampleView::reshape: the loader does not collate (LoaderOptions::collate)");
    BOOST_TEST(error_of(with(pair, [](SampleView& sample) { sample.reshape({2}); })) == "made");
    BOOST_TEST(error_of(with(numbers, [](SampleView& sample) { sample.reshape({2, 3}); })) ==
               "sample 0: make: SampleView::reshape: the layout has 1 sizes, got 2");
    BOOST_TEST(error_of(with(numbers, [](SampleView& sample) { sample.reshape({-1}); })) ==
               "sample 0: make: a sample's shape[0] must be at least 0 and fit into memory, got -1");
    BOOST_TEST(error_of(with(numbers, [](SampleView& sample) { (void)sample.values<float>(); })) ==
               "sample 0: make: SampleView::values: the sample's values have 8 bytes, not 4");
    BOOST_TEST(error_of(with(numbers, [](SampleView&) {})) ==
               "sample 0: make: its shape varies, and the source never called reshape()");
    const auto fixed = stage("count", [](SampleView&) {}).deterministic();
    BOOST_CHECK_EXCEPTION(((void)(FunctionRows{1, numbers, fixed} | cached(1_MiB))), std::invalid_argument,
                          [](const std::invalid_argument& error) {
                              return error.what() ==
                                     std::string{"cached: finished samples are kept only where all have one shape"};
                          });
}

BOOST_AUTO_TEST_CASE(what_a_stage_reshapes_is_not_cached_however_it_came_about) {
    constexpr SampleLayout four{ScalarType::int64, 1, {4}};
    const auto rows = [&](auto reshape) {
        return FunctionRows{
                   6, four,
                   stage("make", [](SampleView& sample) { std::ranges::fill(sample.values<std::int64_t>(), 7); })
                       .deterministic()} |
               stage("reshape", reshape).deterministic();
    };
    const std::string refused = "cached: finished samples are kept only where all have one shape; a stage before it "
                                "reshaped sample ";
    for (const std::int64_t to : {2, 5, 1 << 20}) {
        const auto changing = rows([to](SampleView& sample) { sample.reshape({to}); });
        BOOST_TEST(error_of(changing | cached(1_MiB)).ends_with(refused + "0"));
        const test::TemporaryFolder folder;
        BOOST_CHECK_EXCEPTION(((void)(changing | cached(1_MiB, folder / "cache", "tag"))), std::invalid_argument,
                              [&](const std::invalid_argument& error) { return error.what() == refused + "0"; });
        BOOST_TEST(!std::filesystem::exists(folder / "cache"));
    }
    // The sample has its own shape again, but in other memory.
    const auto moved = rows([](SampleView& sample) {
                           sample.reshape({1 << 20});
                           sample.reshape({4});
                           std::ranges::fill(sample.values<std::int64_t>(), 9);
                       }) |
                       cached(1_MiB);
    const auto recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    const SequentialSampler order{6};
    const auto first = collate_with("first", [](const FinishedSamples& samples, CollatedBatch& batch) {
        std::ranges::copy(samples.samples.front().data(),
                          batch.add("data", ScalarType::int64, std::array{std::int64_t{4}}).begin());
    });
    DataLoader loader{runtime, moved, order, {.num_workers = 0, .collate = first.get()}};
    for (std::size_t epoch = 0; epoch < 2; ++epoch) {
        auto pass = loader.epoch(epoch);
        while (const auto batch = pass.next_blocking())
            BOOST_TEST(values_of(batch->part("data")) == std::vector<std::int64_t>(4, 9),
                       boost::test_tools::per_element());
    }
}

BOOST_AUTO_TEST_SUITE_END()
