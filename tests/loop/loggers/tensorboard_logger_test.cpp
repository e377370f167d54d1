// Reads event files as strictly as TensorBoard's own reader, with checksums.

#include <drawpoint/loop/loggers/file_loggers.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <protozero/pbf_reader.hpp>

#include "support/temporary_folder.hpp"

namespace {

using namespace drawpoint;
using protozero::pbf_reader;

std::uint32_t crc32c(std::string_view bytes) {   // bit by bit, straight from the definition
    std::uint32_t crc = 0xFFFFFFFFu;
    for (const char byte : bytes) {
        crc ^= static_cast<unsigned char>(byte);
        for (int bit = 0; bit < 8; ++bit)
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
    return ~crc;
}

std::uint32_t masked(std::string_view bytes) {
    const std::uint32_t crc = crc32c(bytes);
    return (crc >> 15 | crc << 17) + 0xA282EAD8u;
}

template <class T>
T number_at(std::string_view text, std::size_t at) {
    T number;
    std::memcpy(&number, text.data() + at, sizeof number);
    return number;
}

/// The events of a file; throws if a checksum is wrong or the file is truncated.
std::vector<std::string> events_of(const std::filesystem::path& path) {
    const std::string text = test::bytes_in(path);
    std::vector<std::string> events;
    for (std::size_t at = 0; at < text.size();) {
        if (text.size() - at < 12)
            throw std::runtime_error("a cut header");
        const auto size = static_cast<std::size_t>(number_at<std::uint64_t>(text, at));
        if (number_at<std::uint32_t>(text, at + 8) != masked(std::string_view{text}.substr(at, 8)))
            throw std::runtime_error("a wrong checksum of a length");
        const std::string event = text.substr(at + 12, size);
        if (event.size() != size || number_at<std::uint32_t>(text, at + 12 + size) != masked(event))
            throw std::runtime_error("a wrong checksum of an event");
        events.push_back(event);
        at += size + 16;
    }
    return events;
}

/// An event's only value, and its tag.
struct Value {
    std::int64_t step = 0;
    std::string tag, text, plugin;
    std::optional<float> scalar;
    std::vector<double> counts, edges;
};

std::vector<Value> values_of(const std::string& event) {
    std::vector<Value> values;
    std::int64_t step = 0;
    for (pbf_reader fields{event}; fields.next();)
        if (fields.tag() == 2) {
            step = fields.get_int64();
        } else if (fields.tag() == 5) {
            pbf_reader summary = fields.get_message();
            while (summary.next(1)) {
                Value& value = values.emplace_back();
                value.step = step;
                for (pbf_reader one = summary.get_message(); one.next();) {
                    pbf_reader inner;
                    switch (one.tag()) {
                    case 1: value.tag = one.get_string(); break;
                    case 2: value.scalar = one.get_float(); break;
                    case 5:
                        for (inner = one.get_message(); inner.next();)
                            if (inner.tag() == 6 || inner.tag() == 7) {
                                const auto numbers = inner.tag() == 6 ? &value.edges : &value.counts;
                                for (const double number : inner.get_packed_double())
                                    numbers->push_back(number);
                            } else {
                                inner.skip();
                            }
                        break;
                    case 8:
                        for (inner = one.get_message(); inner.next();)
                            if (inner.tag() == 8)
                                value.text = inner.get_string();
                            else
                                inner.skip();
                        break;
                    case 9:
                        for (inner = one.get_message(); inner.next();)
                            if (inner.tag() == 1) {
                                pbf_reader plugin = inner.get_message();
                                if (plugin.next(1))
                                    value.plugin = plugin.get_string();
                            } else {
                                inner.skip();
                            }
                        break;
                    default: one.skip();
                    }
                }
            }
        } else {
            fields.skip();
        }
    return values;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(tensorboard_logger)

BOOST_AUTO_TEST_CASE(settings_charts_and_texts_are_for_the_plugins_that_show_them) {
    const test::TemporaryFolder folder;
    TensorBoardLogger logger{folder / "run"};
    logger.set_time(1000.25);
    const std::vector<LogSetting> settings{{"num-workers", "2"}, {"order", "in"}};
    const std::vector<std::string_view> metrics{"report/wall_s"};
    logger.log_settings(settings, metrics);
    const std::vector<ScalarChart> charts{{"draws", {"a/b", "c"}}};
    logger.log_charts("drawpoint", charts);
    logger.log_text("verdict", "# decode");
    logger.set_end(RunEnd::killed);
    logger.finish();
    logger.finish();
    const auto events = events_of(logger.file());
    BOOST_REQUIRE_EQUAL(events.size(), 1u + 2 + 1 + 1 + 1);
    std::vector<Value> values;
    for (std::size_t i = 1; i < events.size(); ++i) {
        pbf_reader fields{events[i]};
        BOOST_TEST(fields.next(1));
        BOOST_TEST(fields.get_double() == 1000.25);
        for (const Value& value : values_of(events[i]))
            values.push_back(value);
    }
    BOOST_TEST(values[0].tag == "_hparams_/experiment");
    BOOST_TEST(values[1].tag == "_hparams_/session_start_info");
    BOOST_TEST(values[1].plugin == "hparams");
    BOOST_TEST(values[2].tag == "custom_scalars__config__");
    BOOST_TEST(values[2].plugin == "custom_scalars");
    BOOST_TEST(values[2].text.find("^a/b$") != std::string::npos);
    BOOST_TEST(values[3].text == "# decode");
    BOOST_TEST(values[4].tag == "_hparams_/session_end_info");
}

BOOST_AUTO_TEST_CASE(the_checksum_is_crc_32c) { BOOST_TEST(crc32c("123456789") == 0xE3069283u); }

BOOST_AUTO_TEST_CASE(a_file_begins_with_its_version_and_is_named_as_tensorboard_finds_it) {
    const test::TemporaryFolder folder;
    const TensorBoardLogger logger{folder / "run"};
    BOOST_TEST(logger.file().filename().string().starts_with("events.out.tfevents."));
    const auto events = events_of(logger.file());
    BOOST_REQUIRE_EQUAL(events.size(), 1u);
    pbf_reader fields{events[0]};
    BOOST_TEST(fields.next(1));
    BOOST_TEST(fields.get_double() > 1e9);
    BOOST_TEST(fields.next(3));
    BOOST_TEST(fields.get_string() == "brain.Event:2");
}

BOOST_AUTO_TEST_CASE(two_loggers_of_one_moment_have_a_file_each) {
    const test::TemporaryFolder folder;
    const TensorBoardLogger one{folder / "run"}, other{folder / "run"};
    BOOST_TEST(one.file() != other.file());
}

BOOST_AUTO_TEST_CASE(scalars_are_in_the_file_as_soon_as_they_are_logged) {
    const test::TemporaryFolder folder;
    TensorBoardLogger logger{folder / "run"};
    const std::array scalars{Scalar{"throughput/step", 1645.5}, Scalar{"throughput/draw", -0.25}};
    logger.log_scalars(scalars, 12);
    const auto events = events_of(logger.file());
    BOOST_REQUIRE_EQUAL(events.size(), 2u);
    const auto values = values_of(events[1]);
    BOOST_REQUIRE_EQUAL(values.size(), 2u);
    BOOST_TEST(values[0].step == 12);
    BOOST_TEST(values[0].tag == "throughput/step");
    BOOST_TEST(values[0].scalar.value() == 1645.5F);
    BOOST_TEST(values[1].scalar.value() == -0.25F);
}

BOOST_AUTO_TEST_CASE(a_summary_is_a_histogram_that_counts_every_finite_value_once) {
    const test::TemporaryFolder folder;
    TensorBoardLogger logger{folder / "run"};
    std::vector<double> durations{std::numeric_limits<double>::quiet_NaN()};
    for (int i = 0; i <= 300; ++i)
        durations.push_back(i);
    logger.log_summary("train/step_duration", durations);
    const auto values = values_of(events_of(logger.file()).at(1));
    BOOST_REQUIRE_EQUAL(values.size(), 1u);
    BOOST_REQUIRE_EQUAL(values[0].counts.size(), 30u);
    BOOST_TEST(values[0].edges.back() == 300.0);
    BOOST_TEST(values[0].counts.front() == 11.0);   // 0 … 10 with the right edge included
    double all = 0;
    for (const double count : values[0].counts)
        all += count;
    BOOST_TEST(all == 301.0);
}

BOOST_AUTO_TEST_CASE(equal_values_are_one_bucket_and_none_are_no_record) {
    const test::TemporaryFolder folder;
    TensorBoardLogger logger{folder / "run"};
    const std::array same{2.0, 2.0};
    logger.log_summary("same", same);
    logger.log_summary("none", {});
    const auto events = events_of(logger.file());
    BOOST_REQUIRE_EQUAL(events.size(), 2u);
    const auto values = values_of(events[1]);
    BOOST_REQUIRE_EQUAL(values.at(0).counts.size(), 1u);
    BOOST_TEST(values[0].counts[0] == 2.0);
}

BOOST_AUTO_TEST_CASE(a_table_is_text_in_markdown_at_the_last_step) {
    const test::TemporaryFolder folder;
    TensorBoardLogger logger{folder / "run"};
    const std::array scalars{Scalar{"a", 1}};
    logger.log_scalars(scalars, 7);
    logger.log_table("profile_report", {{"Phase", "Mean"}, {{"fit", "a|b"}}});
    const auto values = values_of(events_of(logger.file()).at(2));
    BOOST_REQUIRE_EQUAL(values.size(), 1u);
    BOOST_TEST(values[0].plugin == "text");
    BOOST_TEST(values[0].step == 7);
    BOOST_TEST(values[0].text == "| Phase | Mean |\n| --- | --- |\n| fit | a\\|b |\n");
}

BOOST_AUTO_TEST_SUITE_END()
