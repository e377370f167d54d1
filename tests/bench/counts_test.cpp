#include <drawpoint/bench/experiment/counts.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/facts.hpp>

namespace drawpoint::bench {
namespace {

using Values = std::vector<double>;
constexpr auto count = Metric::Unit::count;

/// What is found of one row, with so many others beside it.
CountFinding finding(const Values& base, const Values& candidate, bool is_exact = false, std::size_t others = 0) {
    const auto results = [&](const Values& values) {
        Results all{.name = "it", .rows = {{"it", count, values, is_exact}}};
        for (std::size_t i = 0; i < others; ++i)
            all.rows.push_back({"other " + std::to_string(i), count, {1}, false});
        return all;
    };
    return compare_counts(results(base), results(candidate)).at(0).finding;
}

CountFinding finding_of(const std::vector<CountComparison>& all, const std::string& name) {
    const auto found = std::ranges::find(all, name, &CountComparison::name);
    BOOST_TEST_REQUIRE((found != all.end()), name);
    return found->finding;
}

/// A recording of four samples that were read.
Ledger ledger_of(std::uint64_t bytes, std::uint64_t first_sample = 0) {
    Ledger ledger;
    ledger.batches.push_back({.batch = 0, .size = 4});
    for (std::uint64_t i = 0; i < 4; ++i)
        ledger.samples.push_back({.index = first_sample + i, .bytes = bytes});
    ledger.set_fact(facts::planned_bytes, "4096");
    ledger.set_fact(facts::minor_faults_per_batch, "0.25");
    return ledger;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(counts)

BOOST_AUTO_TEST_CASE(an_exact_count_needs_one_value) {
    BOOST_CHECK((finding({3}, {3}, true) == CountFinding::equal));
    BOOST_CHECK((finding({3}, {4}, true) == CountFinding::more));
    BOOST_CHECK((finding({3}, {2}, true) == CountFinding::fewer));
    BOOST_CHECK((finding({0}, {1e-9}, true) == CountFinding::more));
}

BOOST_AUTO_TEST_CASE(another_count_needs_rounds_so_that_chance_does_not_find_more) {
    BOOST_CHECK((finding({3}, {4}) == CountFinding::too_few_rounds));
    BOOST_CHECK((finding({3, 3, 3}, {4, 4, 4}) == CountFinding::too_few_rounds));         // one of 20 orders
    BOOST_CHECK((finding({3, 3, 3, 3}, {4, 4, 4, 4}) == CountFinding::too_few_rounds));   // one of 70
    BOOST_CHECK((finding({3, 3, 3, 3, 3}, {4, 4, 4, 4, 4}) == CountFinding::more));       // one of 252
    BOOST_CHECK((finding({3, 3, 3, 3, 3}, {4, 4, 4, 4, 4}, false, 2) == CountFinding::too_few_rounds));
    BOOST_CHECK((finding({1, 2, 3, 4, 5}, {5, 6, 7, 8, 9}) == CountFinding::no_difference_shown));
    BOOST_CHECK((finding({6, 7, 8, 9, 10}, {1, 2, 3, 4, 5}) == CountFinding::fewer));
    BOOST_CHECK((finding({3}, {3}) == CountFinding::equal));
}

BOOST_AUTO_TEST_CASE(times_and_what_only_one_file_has_are_left_out) {
    const Results base{"a",
                       {{"wall time", Metric::Unit::seconds, {1}},
                        {"switches", Metric::Unit::number, {1}},
                        {"old", count, {1}, true},
                        {"both", count, {1}, true}}};
    const Results candidate{"b",
                            {{"wall time", Metric::Unit::seconds, {2}},
                             {"switches", Metric::Unit::number, {2}},
                             {"new", count, {1}, true},
                             {"both", count, {1}, true}}};
    const auto found = compare_counts(base, candidate);
    BOOST_REQUIRE(found.size() == 1u);
    BOOST_TEST(found[0].name == "both");
    BOOST_TEST(counts_to_text(found).find("both") != std::string::npos);
    BOOST_TEST(counts_to_markdown(found).find("| both | 1 | 1 | equal |") != std::string::npos);
    BOOST_TEST(counts_to_text({}).find("nothing that both files count") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(recordings_are_compared_by_what_comes_out_the_same_each_time) {
    const auto found = compare_counts(ledger_of(100), ledger_of(101));
    BOOST_CHECK((finding_of(found, "bytes read a sample") == CountFinding::more));
    BOOST_CHECK((finding_of(found, "memory planned") == CountFinding::equal));
    BOOST_CHECK((finding_of(found, "records lost") == CountFinding::equal));
    BOOST_CHECK((finding_of(found, "page faults a batch") == CountFinding::equal));
    BOOST_CHECK((finding_of(compare_counts(ledger_of(100), ledger_of(101, 1)), "bytes read a sample") ==
                 CountFinding::other_samples));
    Ledger prefetched = ledger_of(100);   // one batch more than the run drew
    prefetched.batches.push_back({.batch = 1, .status = BatchStatus::abandoned, .size = 1});
    prefetched.samples.push_back({.index = 9, .batch = 1, .bytes = 500});
    prefetched.failures.push_back({.index = 10, .batch = 1});
    BOOST_CHECK((finding_of(compare_counts(ledger_of(100), prefetched), "samples failed") == CountFinding::equal));
    BOOST_CHECK((finding_of(compare_counts(ledger_of(100), prefetched), "bytes read a sample") == CountFinding::equal));
    Ledger worse = ledger_of(100);
    worse.failures.push_back({.index = 1});
    worse.dropped.push_back({.records = 2});
    worse.set_fact(facts::minor_faults_per_batch, "0.5");
    const auto found_worse = compare_counts(ledger_of(100), worse);
    BOOST_CHECK((finding_of(found_worse, "samples failed") == CountFinding::more));
    BOOST_CHECK((finding_of(found_worse, "records lost") == CountFinding::more));
    BOOST_CHECK((finding_of(found_worse, "page faults a batch") == CountFinding::too_few_rounds));
    BOOST_CHECK((finding_of(compare_counts(worse, ledger_of(100)), "samples failed") == CountFinding::fewer));
}

BOOST_AUTO_TEST_CASE(means_of_different_numbers_of_runs_are_not_compared) {
    // A turn has 10 faults of its own, and each run has one.
    const auto faults = [](std::size_t runs) {
        const double mean = 1 + 10 / static_cast<double>(runs);
        return Results{"a", {{.name = "faults", .unit = count, .values = std::vector(9, mean), .runs = runs}}};
    };
    BOOST_CHECK((finding_of(compare_counts(faults(97), faults(93)), "faults") == CountFinding::other_turns));
    BOOST_CHECK((finding_of(compare_counts(faults(93), faults(93)), "faults") == CountFinding::equal));
}

BOOST_AUTO_TEST_CASE(google_benchmarks_memory_manager_is_read) {
    const auto document = [](double allocations) {
        return nlohmann::json{{"context", {{"num_cpus", 2}}},
                              {"benchmarks",
                               {{{"name", "BM_it"},
                                 {"real_time", 5.0},
                                 {"cpu_time", 5.0},
                                 {"allocs_per_iter", allocations},
                                 {"max_bytes_used", 512}}}}};
    };
    const auto found = compare_counts(results_in("a", document(1)), results_in("b", document(2)));
    BOOST_REQUIRE(found.size() == 2u);
    BOOST_CHECK((finding_of(found, "BM_it allocs_per_iter") == CountFinding::more));
    BOOST_CHECK((finding_of(found, "BM_it max_bytes_used") == CountFinding::equal));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint::bench
