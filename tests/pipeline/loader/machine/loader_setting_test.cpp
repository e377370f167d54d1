#include <array>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/loader/machine/loader_setting.hpp>

namespace drawpoint {
namespace {

BOOST_AUTO_TEST_SUITE(loader_setting)

BOOST_AUTO_TEST_CASE(an_order_is_read_back_from_its_text) {
    BOOST_TEST(to_string(OrderRule::in_order()) == "in");
    BOOST_TEST(to_string(OrderRule::out_of_order()) == "out");
    BOOST_TEST(to_string(OrderRule::bounded(3)) == "3");
    for (const std::uint32_t most : {0u, 1u, 2u, 1000u, OrderRule::any - 1, OrderRule::any})
        BOOST_TEST((OrderRule::parse(to_string(OrderRule{most})) == OrderRule{most}));
}

BOOST_AUTO_TEST_CASE(what_is_no_order_is_refused) {
    for (const std::string_view text :
         {"", "0", "-1", "3 ", " 3", "3x", "IN", "outs", "4294967295", "4294967296", "1.5"})
        BOOST_TEST(!OrderRule::parse(text).has_value(), text);
}

BOOST_AUTO_TEST_CASE(a_setting_out_of_range_is_named_with_its_limit) {
    BOOST_TEST(out_of_range(LoaderSetting{}) == "");
    BOOST_TEST(out_of_range(LoaderSetting{.num_workers = 256,
                                          .prefetch_depth = 55,
                                          .batch_size = 1u << 20,
                                          .order = OrderRule::out_of_order(),
                                          .read_concurrency = 4096}) == "");
    BOOST_TEST(out_of_range(LoaderSetting{.num_workers = 257}) == "num_workers must be at most 256, got 257");
    BOOST_TEST(out_of_range(LoaderSetting{.prefetch_depth = 0}) == "prefetch_depth must be at least 1, got 0");
    BOOST_TEST(out_of_range(LoaderSetting{.prefetch_depth = 56}) == "prefetch_depth must be at most 55, got 56");
    BOOST_TEST(out_of_range(LoaderSetting{.batch_size = 0}) == "batch_size must be at least 1, got 0");
    BOOST_TEST(out_of_range(LoaderSetting{.read_concurrency = 4097}) ==
               "read_concurrency must be at most 4096, got 4097");
}

BOOST_AUTO_TEST_CASE(a_setting_goes_through_options_and_rows_unchanged) {
    std::mt19937_64 random{1};
    for (int i = 0; i < 100; ++i) {
        const LoaderSetting setting{.num_workers = random() % 257,
                                    .prefetch_depth = 1 + random() % 55,
                                    .batch_size = 1 + random() % 1000,
                                    .order = {static_cast<std::uint32_t>(random())},
                                    .read_concurrency = random() % 4097,
                                    .memory_budget = random()};
        BOOST_TEST((options_of(setting).setting() == setting));
        const PipelineRow row = pipeline_row("train", {"read", "decode"}, setting);
        BOOST_TEST(row.name == "train");
        BOOST_TEST(row.stages.size() == 2u);
        BOOST_TEST((setting_of(row) == setting));
        LoaderSetting other{.batch_size = setting.batch_size};
        other = changed_by({.num_workers = row.num_workers,
                            .prefetch_depth = row.prefetch_depth,
                            .order = row.order,
                            .read_concurrency = row.read_concurrency,
                            .memory_budget = row.memory_budget},
                           other);
        BOOST_TEST((other == setting));
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
