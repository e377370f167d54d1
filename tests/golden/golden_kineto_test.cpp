#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/import/chrome_trace.hpp>
#include <drawpoint/instrumentation/ledger/ledger_window.hpp>
#include <drawpoint/instrumentation/report/operators.hpp>
#include "golden/replays.hpp"

using namespace drawpoint;

namespace {

struct Recorded {
    golden::Path path, stem;   // without ".json"
    ImportedTrace trace;

    [[nodiscard]] golden::Path beside(std::string_view extension) const {
        return golden::Path{stem.string() + "." + std::string{extension}};
    }
};

/// Replays every trace that has the companion `needed`; reports those that lack it.
template <class Function>
void replay_traces(const char* needed, Function check) {
    golden::Replays replays{"golden_kineto"};
    for (const golden::Path& path : golden::traces()) {
        const golden::Path stem = golden::trace_stem(path);
        const std::string companion = stem.string() + "." + needed;
        if (*needed != 0 && !std::filesystem::exists(companion))
            replays.missing(path, companion);
        else
            replays(path, [&] { check(Recorded{path, stem, import_chrome_trace(path)}); });
    }
}

/// Replays every file of the group whose name contains `part`.
template <class Function>
void replay_texts(const char* part, Function check) {
    golden::Replays replays{"golden_kineto"};
    for (const golden::Path& path : golden::files("g6_kineto", [&](const std::string& name) {
             return name.find(part) != name.npos && name.ends_with(".txt");
         }))
        replays(path, [&] { check(path); });
}

/// Reads a recorded table, to which print() added a newline.
std::string read_table(const golden::Path& path) {
    std::string text = golden::read_text(path);
    BOOST_TEST_REQUIRE(text.ends_with("\n\n"));
    text.pop_back();
    return text;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in{text};
    for (std::string line; std::getline(in, line);)
        lines.push_back(line);
    return lines;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(golden_kineto)

BOOST_AUTO_TEST_CASE(key_averages_of_a_recorded_trace_are_those_pytorch_computed) {
    replay_traces("key_averages.json", [](const Recorded& one) {
        const golden::Json recorded = golden::read_json(one.beside("key_averages.json"));
        const std::vector<OperatorAverage> averages = key_averages(one.trace.ledger);
        BOOST_TEST_REQUIRE(averages.size() == recorded.at("rows").size());
        std::int64_t self_ns = 0;
        for (std::size_t i = 0; i < averages.size(); ++i) {
            const golden::Json& row = recorded.at("rows").at(i);
            const OperatorAverage& ours = averages[i];
            BOOST_TEST(ours.key == row.at("key").get<std::string>());
            BOOST_TEST(ours.count == row.at("count").get<std::uint64_t>());
            const auto equal = [&](double us, std::int64_t ns, const char* column) {
                BOOST_TEST(us == row.at(column).get<double>(), ours.key << ' ' << column);   // bit for bit
                BOOST_TEST(std::abs(static_cast<double>(ns) / 1e3 - us) < 1e-6, ours.key << ' ' << column);
            };
            equal(ours.self_cpu_us, ours.self_cpu_ns, "self_cpu_time_total");
            equal(ours.cpu_us, ours.cpu_ns, "cpu_time_total");
            self_ns += ours.self_cpu_ns;
        }
        const auto total = recorded.at("self_cpu_time_total_us").get<double>();
        BOOST_TEST(std::abs(static_cast<double>(self_ns) / 1e3 - total) <= 1e-9 * total);
    });
}

BOOST_AUTO_TEST_CASE(tables_of_a_recorded_trace_are_those_pytorch_printed) {
    struct Printed {
        const char* name;
        KeyAveragesOptions group;
        TableOptions options;
    };
    const Printed all[]{
        {"table_self_cpu.txt", {}, {.sort_by = "self_cpu_time_total", .row_limit = 20}},
        {"table_by_shape.txt",
         {.group_by_input_shape = true},
         {.sort_by = "cpu_time_total", .row_limit = 15, .max_shapes_column_width = 60}},
        {"table_count_all.txt", {}, {.sort_by = "count", .row_limit = -1, .max_name_column_width = 40}}};
    for (const Printed& printed : all)
        replay_traces(printed.name, [&](const Recorded& one) {
            const std::string expected = read_table(one.beside(printed.name));
            const std::string ours = table(key_averages(one.trace.ledger, printed.group), printed.options);
            BOOST_TEST(lines_of(ours) == lines_of(expected), boost::test_tools::per_element());
            BOOST_TEST((ours == expected), printed.name);
        });
}

BOOST_AUTO_TEST_CASE(draw_and_compute_of_each_step_are_the_loops_own_within_what_opening_a_range_costs) {
    // The annotations lie inside the loop's two clock readings, and the step's range lies around them: draw ≤ the
    // loop's draw, batch ≥ the loop's compute. Both are off by at most what opening and closing the ranges costs.
    replay_traces("loop_truth.json", [](const Recorded& one) {
        const golden::Json truth = golden::read_json(one.beside("loop_truth.json"));
        std::map<std::uint32_t, std::pair<double, double>> recorded;
        for (const golden::Json& step : truth.at("steps"))
            if (step.at("recorded").get<bool>())
                recorded[step.at("step").get<std::uint32_t>()] = {step.at("draw_s").get<double>(),
                                                                  step.at("compute_s").get<double>()};
        const Ledger& ledger = one.trace.ledger;
        BOOST_TEST_REQUIRE(ledger.steps.size() == recorded.size());
        for (const StepRow& step : ledger.steps) {
            BOOST_TEST_REQUIRE(recorded.contains(step.step));
            const auto [draw_s, compute_s] = recorded[step.step];
            const double draw = static_cast<double>(step.draw_ns) / 1e9;
            const double batch = static_cast<double>(step.batch_ns) / 1e9;
            constexpr double range_cost_s = 250e-6;   // of two or three ranges; recorded runs show up to 84 us
            BOOST_TEST(draw <= draw_s);
            BOOST_TEST(draw_s - draw < range_cost_s);
            BOOST_TEST(batch >= compute_s);
            BOOST_TEST(batch - compute_s < range_cost_s);
            if (truth.contains("loader"))
                BOOST_TEST(step.size == truth.at("loader").at("batch_size").get<std::uint32_t>());
        }
        BOOST_TEST(max_residual_ns(ledger) == 0);
    });
}

BOOST_AUTO_TEST_CASE(the_annotations_of_a_recorded_trace_are_the_rows_of_its_steps) {
    replay_traces("", [](const Recorded& one) {
        const Ledger& ledger = one.trace.ledger;
        const auto total = [&](std::string_view name) {
            std::int64_t ns = 0;
            for (const OperatorRow& row : ledger.operators)
                if (std::string_view{ledger.names[row.name]}.starts_with(name))
                    ns += row.ns;
            return ns;
        };
        const auto of_steps = [&](Span span) {
            std::int64_t ns = 0;
            for (const StepRow& step : ledger.steps)
                for (const SpanRow& piece : ledger.spans_of(step))
                    ns += piece.span == span ? piece.ns : 0;
            return ns;
        };
        BOOST_TEST(of_steps(Span::starved) == total("enumerate(DataLoader)"));
        BOOST_TEST(of_steps(Span::forward) == total("forward"));
        BOOST_TEST(of_steps(Span::backward) == total("backward"));
        BOOST_TEST(of_steps(Span::opt_step) == total("Optimizer.step#"));
        BOOST_TEST(of_steps(Span::zero_grad) == total("Optimizer.zero_grad#"));
        BOOST_TEST(of_steps(Span::opt_step) > 0);
        for (const StepRow& step : ledger.steps)
            for (const Action action : {Action::forward, Action::backward, Action::opt_step, Action::zero_grad})
                BOOST_TEST(duration_of(ledger, step, action).value_or(0) > 0, name_of(action));
    });
}

BOOST_AUTO_TEST_CASE(a_window_of_two_recorded_steps_is_a_ledger_of_two_steps) {
    replay_traces("", [](const Recorded& one) {
        const Ledger& ledger = one.trace.ledger;
        BOOST_TEST_REQUIRE(ledger.steps.size() >= 2u);
        const auto last = std::min<std::size_t>(2, ledger.steps.size() - 1);   // not the first one if there are three
        const StepRow &from = ledger.steps[last - 1], &to = ledger.steps[last];
        const Ledger part = window(ledger, from.draw_begin_ns, to.draw_begin_ns + to.draw_ns + to.batch_ns);
        BOOST_TEST(part.steps.size() == 2u);
        BOOST_TEST(!part.operators.empty());
        BOOST_TEST(part.operators.size() <= ledger.operators.size());
        BOOST_TEST(max_residual_ns(part) == 0);
        for (const OperatorAverage& row : key_averages(part))
            if (row.key == "forward" || row.key.starts_with("Optimizer."))
                BOOST_TEST(row.count == 2u);
    });
}

/// The position of a column in a recorded table.
struct Column {
    std::size_t at, width;
};

std::vector<Column> columns_of(const std::string& dashes) {
    std::vector<Column> all;
    for (std::size_t at = dashes.find('-'); at != dashes.npos;) {
        const std::size_t end = std::min(dashes.find(' ', at), dashes.size());
        all.push_back({at, end - at});
        at = dashes.find('-', end);
    }
    return all;
}

std::string cell(const std::string& line, const Column& column) {
    if (line.size() <= column.at)
        return "";
    const std::string text = line.substr(column.at, column.width);
    const std::size_t from = text.find_first_not_of(' ');
    return from == std::string::npos ? std::string{} : text.substr(from, text.find_last_not_of(' ') - from + 1);
}

/// A printed duration, and half a unit of its last digit.
std::pair<double, double> microseconds(const std::string& text) {
    const double unit = text.ends_with("us") ? 1 : text.ends_with("ms") ? 1e3 : 1e6;
    const std::size_t point = text.find('.'), end = text.find_first_not_of("0123456789.");
    const auto digits = point == text.npos ? 0.0 : static_cast<double>(end - point - 1);
    return {std::stod(text) * unit, 0.5 * std::pow(10, -digits) * unit};
}

/// The rows of a recorded table with stacks, and the range of total self times that its footer and shares allow.
struct StackTable {
    std::vector<OperatorAverage> rows;
    double least_total = 0, most_total = 1e300;
    std::vector<Column> columns;

    void bound(double least, double most) {
        least_total = std::max(least_total, least);
        most_total = std::min(most_total, most);
    }
};

StackTable stack_table(const std::vector<std::string>& lines) {
    StackTable all;
    all.columns = columns_of(lines.at(0));
    BOOST_TEST_REQUIRE(all.columns.size() == 8u);   // name, shares and times, calls, source location
    const auto& column = all.columns;
    std::size_t i = 3;
    for (; lines.at(i) != lines[0]; ++i) {
        const std::string name = cell(lines[i], column[0]), frame = cell(lines[i], column[7]);
        if (!name.empty()) {
            OperatorAverage& row = all.rows.emplace_back();
            // A name that was cut off continues in an unknown way.
            row.key = name.ends_with("...") ? name.substr(0, name.size() - 3) + "unknown rest" : name;
            row.self_cpu_us = microseconds(cell(lines[i], column[2])).first;
            row.cpu_us = microseconds(cell(lines[i], column[4])).first;
            row.count = std::stoull(cell(lines[i], column[6]));
            const double share = std::stod(cell(lines[i], column[1]));
            if (share > 0.005)
                all.bound(row.self_cpu_us / (share + 0.005) * 100, row.self_cpu_us / (share - 0.005) * 100);
        }
        if (!frame.empty())
            all.rows.back().stack.push_back(frame.starts_with("...") ? "unknown beginning" + frame.substr(3) : frame);
    }
    const std::string footer = "Self CPU time total: ";
    BOOST_TEST_REQUIRE(lines.at(i + 1).starts_with(footer));
    const auto [total, half] = microseconds(lines[i + 1].substr(footer.size()));
    all.bound(total - half, total + half);
    return all;
}

BOOST_AUTO_TEST_CASE(the_recorded_stack_table_is_printed_byte_for_byte_from_its_own_figures) {
    replay_texts(".table_stack", [](const golden::Path& path) {
        const std::string expected = read_table(path);
        StackTable recorded = stack_table(lines_of(expected));
        double self_us = 0;
        for (const OperatorAverage& row : recorded.rows)
            self_us += row.self_cpu_us;
        const auto shown = static_cast<std::int64_t>(recorded.rows.size());
        BOOST_TEST_REQUIRE(recorded.least_total <= recorded.most_total);
        // The rows beyond the limit: together they have what remains of the total in the footer and the shares.
        const double rest = (recorded.least_total + recorded.most_total) / 2 - self_us;
        recorded.rows.push_back({.key = "all the others", .count = 1, .self_cpu_us = rest});
        const std::string ours = table(recorded.rows, {.row_limit = shown,
                                                       .max_src_column_width = recorded.columns[7].width,
                                                       .max_name_column_width = recorded.columns[0].width});
        BOOST_TEST(lines_of(ours) == lines_of(expected), boost::test_tools::per_element());
        BOOST_TEST((ours == expected));
    });
}

BOOST_AUTO_TEST_CASE(the_recorded_folded_stacks_come_back_from_rows_with_those_callers) {
    replay_texts(".stacks_", [](const golden::Path& path) {
        if (!path.filename().string().ends_with(".stacks_self_cpu_time_total.txt"))
            throw std::runtime_error("stacks of another metric than self_cpu_time_total");
        const std::string expected = golden::read_text(path);
        Ledger ledger;
        ledger.names.emplace_back("aten::op");
        ledger.threads.push_back({.tid = 1, .name = "main"});
        std::int64_t now_ns = 0;
        for (const std::string& line : lines_of(expected)) {
            const std::size_t blank = line.rfind(' ');
            OperatorRow row{.kind = OperatorKind::cpu_op,
                            .begin_ns = now_ns,
                            .ns = std::stoll(line.substr(blank + 1)) * 1000 + 999};
            std::istringstream frames{line.substr(0, blank)};
            for (std::string frame; std::getline(frames, frame, ';');) {
                // "file.py(81):_function": the mark after the colon stands for a blank.
                const std::size_t colon = frame.find("):_"), open = frame.rfind('(', colon);
                FrameRow place{.function = static_cast<std::uint32_t>(ledger.names.size())};
                if (colon == std::string::npos) {
                    ledger.names.push_back(frame);
                } else {
                    ledger.names.push_back(frame.substr(colon + 3));
                    place.file = static_cast<std::uint32_t>(ledger.names.size());
                    ledger.names.push_back(frame.substr(0, open));
                    place.line = static_cast<std::uint32_t>(std::stoul(frame.substr(open + 1)));
                }
                ledger.frames.push_back(place);
                ledger.stacks.push_back({row.stack, static_cast<std::uint32_t>(ledger.frames.size() - 1)});
                row.stack = static_cast<std::uint32_t>(ledger.stacks.size() - 1);
            }
            ledger.operators.push_back(row);
            now_ns += row.ns;
        }
        BOOST_TEST(lines_of(export_stacks(ledger)) == lines_of(expected), boost::test_tools::per_element());
    });
}

BOOST_AUTO_TEST_SUITE_END()
