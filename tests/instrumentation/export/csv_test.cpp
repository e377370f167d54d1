#include <boost/test/unit_test.hpp>

#include <limits>
#include <map>
#include <sstream>
#include <vector>

#include <drawpoint/instrumentation/export/csv.hpp>

#include "tests/instrumentation/export/operator_run.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::test;

std::vector<std::map<std::string, std::string>> table(const Ledger& ledger) {
    std::istringstream text{text_of([&](std::ostream& out) { write_csv_steps(ledger, out); })};
    const auto cells = [](const std::string& line) {
        std::vector<std::string> found(1);
        for (const char c : line)
            if (c == ',')
                found.emplace_back();
            else
                found.back() += c;
        return found;
    };
    std::string line;
    std::getline(text, line);
    const std::vector<std::string> names = cells(line);
    std::vector<std::map<std::string, std::string>> rows;
    while (std::getline(text, line)) {
        const std::vector<std::string> values = cells(line);
        BOOST_REQUIRE(values.size() == names.size());
        auto& row = rows.emplace_back();
        for (std::size_t i = 0; i < names.size(); ++i)
            row[names[i]] = values[i];
    }
    return rows;
}

std::int64_t number(const std::string& cell) { return cell.empty() ? 0 : std::stoll(cell); }

BOOST_AUTO_TEST_SUITE(csv)

BOOST_AUTO_TEST_CASE(a_row_a_step_holds_its_exact_nanoseconds) {
    Ledger ledger = hand_made::one_epoch();
    ledger.steps[1].cpu_ns = 17;
    ledger.steps[1].run_queue_ns = 0;
    ledger.steps[1].between_run_queue_ns = 5;
    const auto rows = table(ledger);
    BOOST_REQUIRE(rows.size() == ledger.steps.size());
    auto row = rows[1];   // the training step with factor 2
    BOOST_TEST(row["step"] == "1");
    BOOST_TEST(row["phase"] == "train");
    BOOST_TEST(row["status"] == "complete");
    BOOST_TEST(row["size"] == "4");
    BOOST_TEST(number(row["starved_ns"]) == 2 * hand_made::starved);
    BOOST_TEST(number(row["handoff_ns"]) == 2 * hand_made::handoff);
    BOOST_TEST(number(row["transfer_ns"]) == 2 * hand_made::transfer);
    BOOST_TEST(number(row["loss_ns"]) == 2 * (hand_made::loss + hand_made::after_loss));
    BOOST_TEST(number(row["between_ns"]) == 2 * hand_made::between);
    BOOST_TEST(number(row["draw_begin_ns"]) == ledger.steps[1].draw_begin_ns - ledger.start_ns);
    BOOST_TEST(row["loss"] == "4");
    BOOST_TEST(row["predict_ns"].empty());
    BOOST_TEST(row["cpu_ns"] == "17");
    BOOST_TEST(row["run_queue_ns"] == "0");
    BOOST_TEST(row["between_run_queue_ns"] == "5");
    auto valid = rows[3];
    BOOST_TEST(valid["phase"] == "valid");
    BOOST_TEST(valid["backward_ns"].empty());
    BOOST_TEST(valid["loss"].empty());
    BOOST_TEST(valid["cpu_ns"].empty());
    BOOST_TEST(number(valid["predict_ns"]) > 0);
}

BOOST_AUTO_TEST_CASE(the_columns_of_every_row_sum) {
    for (auto row : table(hand_made::one_epoch())) {
        std::int64_t batch = 0;
        for (const std::string action :
             {"forward", "predict", "loss", "backward", "opt_step", "zero_grad", "callbacks", "other"})
            batch += number(row[action + "_ns"]);
        BOOST_TEST(batch == number(row["batch_ns"]));
        BOOST_TEST(number(row["draw_ns"]) + number(row["batch_ns"]) == number(row["step_ns"]));
    }
}

BOOST_AUTO_TEST_CASE(a_loss_reads_back_as_the_very_number) {
    Ledger ledger = hand_made::one_epoch();
    const std::vector<double> losses{0.1 + 0.2, 1e-300, 12345678.90123, std::numeric_limits<double>::infinity()};
    for (std::size_t i = 0; i < losses.size(); ++i)
        ledger.steps[i].loss = losses[i];
    ledger.steps[4].loss = std::numeric_limits<double>::quiet_NaN();
    auto rows = table(ledger);
    for (std::size_t i = 0; i < losses.size(); ++i)
        BOOST_TEST(std::stod(rows[i]["loss"]) == losses[i]);
    BOOST_TEST(rows[4]["loss"] == "nan");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
