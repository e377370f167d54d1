// Reads what the loggers of experiment trackers write as strictly as the trackers do: W&B's log with checksums, and
// MLflow's files.

#include <drawpoint/loop/loggers/tracker_loggers.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>

#include "support/temporary_folder.hpp"

namespace {

using namespace drawpoint;
using nlohmann::json;
using protozero::pbf_reader;
namespace fs = std::filesystem;

std::uint32_t crc32(std::string_view bytes) {   // bit by bit, straight from the definition
    std::uint32_t crc = 0xFFFFFFFFu;
    for (const char byte : bytes) {
        crc ^= static_cast<unsigned char>(byte);
        for (int bit = 0; bit < 8; ++bit)
            crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
    return ~crc;
}

std::uint32_t byte_at(std::string_view text, std::size_t at) { return static_cast<unsigned char>(text.at(at)); }

/// The records of a W&B file; throws if anything is wrong with its blocks.
std::vector<std::string> records_of(const fs::path& path) {
    constexpr std::size_t block = 32'768, header = 7;
    const std::string text = test::bytes_in(path);
    if (text.substr(0, header) != std::string_view{":W&B\xE1\xBE\0", header})
        throw std::runtime_error{"a wrong head"};
    std::vector<std::string> records;
    std::string open;
    bool is_open = false;
    for (std::size_t at = header; at < text.size();) {
        if (block - at % block < header) {   // a rest that is too short for a chunk
            at += block - at % block;
            continue;
        }
        const std::uint32_t sum =
            byte_at(text, at) | byte_at(text, at + 1) << 8 | byte_at(text, at + 2) << 16 | byte_at(text, at + 3) << 24;
        const std::size_t length = byte_at(text, at + 4) | byte_at(text, at + 5) << 8;
        const std::uint32_t place = byte_at(text, at + 6);
        const std::string_view body = std::string_view{text}.substr(at + 6, length + 1);
        if (body.size() != length + 1 || crc32(body) != sum)
            throw std::runtime_error{"a wrong checksum"};
        if (at % block + header + length > block)
            throw std::runtime_error{"a chunk that crosses a block's end"};
        if ((place == 1 || place == 2) == is_open || place < 1 || place > 4)
            throw std::runtime_error{"a chunk out of place"};
        open += body.substr(1);
        is_open = place == 2 || place == 3;
        if (!is_open)
            records.push_back(std::exchange(open, {}));
        at += header + length;
    }
    if (is_open)
        throw std::runtime_error{"an open record"};
    return records;
}

struct Item {
    std::string key, value;
};

struct Record {
    std::uint64_t number = 0;
    std::uint32_t field = 0;
    std::string message;

    [[nodiscard]] std::map<std::string, std::string> items() const {
        std::map<std::string, std::string> all;
        for (pbf_reader fields{message}; fields.next();) {
            if (fields.tag() != 1 || fields.wire_type() != protozero::pbf_wire_type::length_delimited) {
                fields.skip();
                continue;
            }
            Item item;
            for (pbf_reader one = fields.get_message(); one.next();)
                if (one.tag() == 1)
                    item.key = one.get_string();
                else
                    item.value = one.get_string();
            all[item.key] = item.value;
        }
        return all;
    }
};

std::vector<Record> parsed(const fs::path& path) {
    std::vector<Record> records;
    for (const std::string& bytes : records_of(path)) {
        Record& record = records.emplace_back();
        for (pbf_reader fields{bytes}; fields.next();)
            if (fields.tag() == 1) {
                record.number = static_cast<std::uint64_t>(fields.get_int64());
            } else {
                record.field = fields.tag();
                record.message = fields.get_bytes();
            }
    }
    return records;
}

constexpr std::uint32_t history = 2, summary = 3, config = 5, files = 6, run = 17, exit_of_run = 18;

const LogTable table{.titles = {"action", "mean"}, .rows = {{"draw", "3 ms"}, {"step|\n", "\"x\""}}};

void log_all(Logger& logger, std::uint64_t steps) {
    const std::vector<LogSetting> settings{{"num-workers", "2"}, {"order", "in"}, {"x: y", "a\nb\"c"}};
    logger.set_time(1000.5);
    logger.log_settings(settings, {});
    for (std::uint64_t step = 1; step <= steps; ++step) {
        logger.set_time(1000.5 + static_cast<double>(step));
        const std::vector<Scalar> scalars{{"draw_s", 0.25 * static_cast<double>(step)}, {"train/loss", 1.5}};
        logger.log_scalars(scalars, step);
    }
    logger.log_summary("draws", std::vector<double>{1, 2, 3, std::numeric_limits<double>::quiet_NaN()});
    logger.log_table("report", table);
    logger.log_text("a/verdict", "**decode**\n");
}

}   // namespace

BOOST_AUTO_TEST_SUITE(tracker_loggers)

BOOST_AUTO_TEST_CASE(the_checksum_is_crc_32) { BOOST_TEST(crc32("123456789") == 0xCBF43926u); }

BOOST_AUTO_TEST_CASE(wandb_reads_a_run_with_its_settings_history_files_and_end) {
    const test::TemporaryFolder folder;
    fs::path file;
    {
        WandbLogger logger{folder / "wandb"};
        file = logger.file();
        log_all(logger, 3);
        logger.finish();
        logger.finish();
        BOOST_TEST(logger.error() == "");
    }
    BOOST_TEST(file.parent_path().filename().string().starts_with("offline-run-"));
    const std::vector<Record> records = parsed(file);
    std::map<std::uint32_t, std::vector<const Record*>> by_field;
    for (std::size_t i = 0; i < records.size(); ++i) {
        BOOST_TEST(records[i].number == i + 1);
        by_field[records[i].field].push_back(&records[i]);
    }
    BOOST_TEST(records.front().field == run);
    BOOST_TEST(records.back().field == exit_of_run);
    BOOST_REQUIRE(by_field[config].size() == 1u);
    const auto settings = by_field[config][0]->items();
    BOOST_TEST(json::parse(settings.at("num-workers"))["value"] == 2);
    BOOST_TEST(json::parse(settings.at("order"))["value"] == "in");
    BOOST_TEST(json::parse(settings.at("x: y"))["value"] == "a\nb\"c");
    BOOST_REQUIRE(by_field[history].size() == 5u);   // three steps, a histogram and a table
    for (std::size_t step = 0; step < 3; ++step) {
        const auto items = by_field[history][step]->items();
        BOOST_TEST(items.at("_step") == std::to_string(step + 1));
        BOOST_TEST(json::parse(items.at("draw_s")).get<double>() == 0.25 * static_cast<double>(step + 1));
        BOOST_TEST(json::parse(items.at("_runtime")).get<double>() == static_cast<double>(step + 1));
        BOOST_TEST(json::parse(items.at("_timestamp")).get<double>() == 1001.5 + static_cast<double>(step));
    }
    const json histogram = json::parse(by_field[history][3]->items().at("draws"));
    BOOST_TEST(histogram["_type"] == "histogram");
    BOOST_TEST(histogram["values"].size() + 1 == histogram["bins"].size());
    double counted = 0;
    for (const json& count : histogram["values"])
        counted += count.get<double>();
    BOOST_TEST(counted == 3);   // what is no number is not counted
    const json of_table = json::parse(by_field[history][4]->items().at("report"));
    const json content =
        json::parse(test::bytes_in(file.parent_path() / "files" / of_table["path"].get<std::string>()));
    BOOST_TEST(content["columns"] == json(table.titles));
    BOOST_TEST(content["data"] == json(table.rows));
    BOOST_TEST(by_field[files].size() == 2u);
    BOOST_TEST(test::bytes_in(file.parent_path() / "files/a_verdict.md") == "**decode**\n");
    BOOST_REQUIRE(by_field[summary].size() == 1u);
    BOOST_TEST(json::parse(by_field[summary][0]->items().at("draw_s")).get<double>() == 0.75);
    pbf_reader end{by_field[exit_of_run][0]->message};
    BOOST_TEST(end.next(1));
    BOOST_TEST(end.get_int32() == 0);
}

BOOST_AUTO_TEST_CASE(records_of_any_length_cross_the_blocks_of_wandb) {
    const test::TemporaryFolder folder;
    for (std::size_t length = 32'650; length < 32'760; ++length) {   // whatever the first record leaves of its block
        WandbLogger logger{folder / "all"};
        const std::string name(length, 'n');
        const std::vector<Scalar> scalars{{name, 1.0}};
        for (std::uint64_t step = 1; step < 3; ++step)
            logger.log_scalars(scalars, step);
        logger.finish();
        BOOST_TEST(parsed(logger.file()).size() == 1u + 2 + 2);
    }
    for (const std::size_t length : {32'700u, 32'740u, 32'760u, 40'000u, 100'000u}) {
        WandbLogger logger{folder / "wandb"};
        const std::string name(length, 'n');
        const std::vector<Scalar> scalars{{name, 1.0}};
        for (std::uint64_t step = 1; step < 8; ++step)
            logger.log_scalars(scalars, step);
        logger.finish();
        const auto records = parsed(logger.file());
        BOOST_TEST(records.size() == 1u + 7 + 2);
        BOOST_TEST(records[1].items().contains(name));
    }
}

BOOST_AUTO_TEST_CASE(a_run_without_an_end_has_failed) {
    const test::TemporaryFolder folder;
    fs::path file, store;
    {
        WandbLogger wandb{folder / "wandb"};
        MlflowLogger mlflow{folder / "mlruns"};
        file = wandb.file();
        store = mlflow.folder();
        log_all(wandb, 1);
        log_all(mlflow, 1);
    }
    pbf_reader end{parsed(file).back().message};
    BOOST_TEST(end.next(1));
    BOOST_TEST(end.get_int32() == 1);
    BOOST_TEST(test::bytes_in(store / "meta.yaml").find("\nstatus: 4\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(mlflow_reads_metrics_parameters_and_artifacts_from_files) {
    const test::TemporaryFolder folder;
    MlflowLogger logger{folder / "mlruns", "my: run"};
    log_all(logger, 3);
    logger.set_end(RunEnd::killed);
    logger.finish();
    BOOST_TEST(logger.error() == "");
    const fs::path run_folder = logger.folder();
    BOOST_TEST(run_folder.filename().string().size() == 32u);
    BOOST_TEST(test::bytes_in(run_folder / "metrics/draw_s") == "1001500 0.25 1\n1002500 0.5 2\n1003500 0.75 3\n");
    BOOST_TEST(test::bytes_in(run_folder / "metrics/train/loss") == "1001500 1.5 1\n1002500 1.5 2\n1003500 1.5 3\n");
    BOOST_TEST(test::bytes_in(run_folder / "params/num-workers") == "2");
    BOOST_TEST(test::bytes_in(run_folder / "params/x_ y") == "a\nb\"c");
    BOOST_TEST(test::bytes_in(run_folder / "artifacts/a/verdict.md") == "**decode**\n");
    BOOST_TEST(json::parse(test::bytes_in(run_folder / "artifacts/report.json"))["data"] == json(table.rows));
    const std::string meta = test::bytes_in(run_folder / "meta.yaml");
    for (const char* const line : {"\nstart_time: 1000500\n", "\nend_time: 1003500\n", "\nstatus: 5\n",
                                   "\nrun_name: \"my: run\"\n", "\nlifecycle_stage: active\n"})
        BOOST_TEST(meta.find(line) != std::string::npos, meta << " has no " << line);
    BOOST_TEST(test::bytes_in(folder / "mlruns/0/meta.yaml").find("\nexperiment_id: '0'\n") != std::string::npos);
    const MlflowLogger second{folder / "mlruns"};   // beside it
    BOOST_TEST(second.folder() != run_folder);
}

BOOST_AUTO_TEST_CASE(no_name_leads_out_of_the_run) {
    const test::TemporaryFolder folder;
    MlflowLogger logger{folder / "mlruns"};
    const std::string outside = folder.file("outside");
    const std::vector<LogSetting> settings{
        {outside, "1"},
        {"../../../x", "2"},
        {"a/../../b", "3"},
    };
    logger.log_settings(settings, {});
    const std::vector<Scalar> scalars{{"/../../y", 1.0}};
    logger.log_scalars(scalars, 1);
    logger.log_text("../../../../z", "text");
    logger.finish();
    BOOST_TEST(logger.error() == "");
    for (const fs::directory_entry& entry : fs::directory_iterator{folder.path()})
        BOOST_TEST(entry.path() == folder / "mlruns");
    std::size_t parameters = 0;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator{logger.folder() / "params"})
        parameters += entry.is_regular_file();
    BOOST_TEST(parameters == 3u);
    BOOST_TEST(test::bytes_in(logger.folder() / "metrics/_/_/_/y") != "");
    MlflowLogger other{folder / "mlruns"};
    const std::vector<LogSetting> dots{{"..", "4"}, {"...", "5"}, {"", "6"}};
    other.log_settings(dots, {});
    BOOST_TEST(other.error() == "");
    BOOST_TEST(test::bytes_in(other.folder() / "params/_") == "6");
}

BOOST_AUTO_TEST_CASE(a_digest_is_no_number) {
    const test::TemporaryFolder folder;
    WandbLogger logger{folder / "wandb"};
    const std::vector<LogSetting> settings{
        {"digest", "1234567890123e45"}, {"other", "1234567890123456"}, {"rate", "0.25"}};
    logger.log_settings(settings, {});
    logger.finish();
    const auto items = parsed(logger.file())[1].items();
    BOOST_TEST(json::parse(items.at("digest"))["value"] == "1234567890123e45");
    BOOST_TEST(json::parse(items.at("other"))["value"] == "1234567890123456");
    BOOST_TEST(json::parse(items.at("rate"))["value"] == 0.25);
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_made_is_named) {
    const test::TemporaryFolder folder;
    const fs::path file = folder / "file";
    test::put_bytes(file, "x");
    BOOST_CHECK_THROW(WandbLogger{file / "wandb"}, std::system_error);
    BOOST_CHECK_THROW(MlflowLogger{file / "mlruns"}, std::system_error);
}

BOOST_AUTO_TEST_SUITE_END()
