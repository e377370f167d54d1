#include <boost/test/unit_test.hpp>

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
#include "golden/golden_files.hpp"

using namespace drawpoint;

namespace {

struct Recorded {
    golden::Path stem;   // without ".json"
    ImportedTrace trace;

    [[nodiscard]] golden::Path beside(std::string_view extension) const {
        return golden::Path{stem.string() + "." + std::string{extension}};
    }
};

/// The traces of all folders; each folder has at least one.
std::vector<Recorded> traces() {
    std::vector<Recorded> all;
    for (const golden::Path& folder : golden::folders()) {
        const std::size_t before = all.size();
        for (const auto& entry : std::filesystem::directory_iterator{folder / "g6_kineto"}) {
            std::string name = entry.path().string();
            const std::string_view end = ".loop_truth.json";
            if (!name.ends_with(end))
                continue;
            name.resize(name.size() - end.size());
            golden::Path file{name + ".json"};
            if (!exists(file))
                file += ".gz";
            all.push_back({name, import_chrome_trace(file)});
        }
        BOOST_REQUIRE_MESSAGE(all.size() > before, "no trace in " << folder);
    }
    return all;
}

/// A recorded table: print() put a further newline behind it.
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
    for (const Recorded& one : traces()) {
        const golden::Json recorded = golden::read_json(one.beside("key_averages.json"));
        const std::vector<OperatorAverage> averages = key_averages(one.trace.ledger);
        BOOST_TEST_CONTEXT(one.stem) {
            BOOST_TEST_REQUIRE(averages.size() == recorded.at("rows").size());
            std::int64_t self_ns = 0;
            for (std::size_t i = 0; i < averages.size(); ++i) {
                const golden::Json& row = recorded.at("rows").at(i);
                const OperatorAverage& ours = averages[i];
                BOOST_TEST(ours.key == row.at("key").get<std::string>());
                BOOST_TEST(ours.count == row.at("count").get<std::uint64_t>());
                const auto equal = [&](double us, std::int64_t ns, const char* column) {
                    BOOST_TEST(us == row.at(column).get<double>(), ours.key << ' ' << column);   // to the last bit
                    BOOST_TEST(std::abs(static_cast<double>(ns) / 1e3 - us) < 1e-6, ours.key << ' ' << column);
                };
                equal(ours.self_cpu_us, ours.self_cpu_ns, "self_cpu_time_total");
                equal(ours.cpu_us, ours.cpu_ns, "cpu_time_total");
                self_ns += ours.self_cpu_ns;
            }
            const auto total = recorded.at("self_cpu_time_total_us").get<double>();
            BOOST_TEST(std::abs(static_cast<double>(self_ns) / 1e3 - total) <= 1e-9 * total);
        }
    }
}

BOOST_AUTO_TEST_CASE(tables_of_a_recorded_trace_are_those_pytorch_printed) {
    for (const Recorded& one : traces()) {
        const auto is_recorded = [&](const char* name, const KeyAveragesOptions& group, const TableOptions& options) {
            const std::string expected = read_table(one.beside(name));
            const std::string ours = table(key_averages(one.trace.ledger, group), options);
            BOOST_TEST(lines_of(ours) == lines_of(expected), boost::test_tools::per_element());
            BOOST_TEST((ours == expected), one.stem << ' ' << name);
        };
        BOOST_TEST_CONTEXT(one.stem) {
            is_recorded("table_self_cpu.txt", {}, {.sort_by = "self_cpu_time_total", .row_limit = 20});
            is_recorded("table_by_shape.txt", {.group_by_input_shape = true},
                        {.sort_by = "cpu_time_total", .row_limit = 15, .max_shapes_column_width = 60});
            is_recorded("table_count_all.txt", {}, {.sort_by = "count", .row_limit = -1, .max_name_column_width = 40});
        }
    }
}

BOOST_AUTO_TEST_CASE(draw_and_compute_of_each_step_are_the_loops_own_within_what_opening_a_range_costs) {
    // The annotations lie inside the loop's two clock readings, the step's range around them: draw ≤ the loop's draw,
    // batch ≥ the loop's compute, and both are off by no more than what opening and closing the ranges costs.
    for (const Recorded& one : traces()) {
        const golden::Json truth = golden::read_json(one.beside("loop_truth.json"));
        std::map<std::uint32_t, std::pair<double, double>> recorded;
        for (const golden::Json& step : truth.at("steps"))
            if (step.at("recorded").get<bool>())
                recorded[step.at("step").get<std::uint32_t>()] = {step.at("draw_s").get<double>(),
                                                                  step.at("compute_s").get<double>()};
        const Ledger& ledger = one.trace.ledger;
        BOOST_TEST_CONTEXT(one.stem) {
            BOOST_TEST_REQUIRE(ledger.steps.size() == recorded.size());
            for (const StepRow& step : ledger.steps) {
                BOOST_TEST_REQUIRE(recorded.contains(step.step));
                const auto [draw_s, compute_s] = recorded[step.step];
                const double draw = static_cast<double>(step.draw_ns) / 1e9;
                const double batch = static_cast<double>(step.batch_ns) / 1e9;
                BOOST_TEST_MESSAGE(one.stem.filename()
                                   << " step " << step.step << ": draw " << draw * 1e6 << " us of " << draw_s * 1e6
                                   << ", batch " << batch * 1e6 << " us of " << compute_s * 1e6);
                constexpr double range_cost_s = 100e-6;   // of two or three ranges; 4 … 54 us in these
                BOOST_TEST(draw <= draw_s);
                BOOST_TEST(draw_s - draw < range_cost_s);
                BOOST_TEST(batch >= compute_s);
                BOOST_TEST(batch - compute_s < range_cost_s);
                BOOST_TEST(step.size == 16u);
            }
            BOOST_TEST(max_residual_ns(ledger) == 0);
        }
    }
}

BOOST_AUTO_TEST_CASE(the_annotations_of_a_recorded_trace_are_the_rows_of_its_steps) {
    for (const Recorded& one : traces()) {
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
        BOOST_TEST_CONTEXT(one.stem) {
            BOOST_TEST(of_steps(Span::starved) == total("enumerate(DataLoader)"));
            BOOST_TEST(of_steps(Span::forward) == total("forward"));
            BOOST_TEST(of_steps(Span::backward) == total("backward"));
            BOOST_TEST(of_steps(Span::opt_step) == total("Optimizer.step#"));
            BOOST_TEST(of_steps(Span::zero_grad) == total("Optimizer.zero_grad#"));
            BOOST_TEST(of_steps(Span::opt_step) > 0);
            for (const StepRow& step : ledger.steps)
                for (const Action action : {Action::forward, Action::backward, Action::opt_step, Action::zero_grad})
                    BOOST_TEST(duration_of(ledger, step, action).value_or(0) > 0, name_of(action));
        }
    }
}

BOOST_AUTO_TEST_CASE(a_window_of_two_recorded_steps_is_a_ledger_of_two_steps) {
    for (const Recorded& one : traces()) {
        const Ledger& ledger = one.trace.ledger;
        const StepRow &first = ledger.steps.at(1), &last = ledger.steps.at(2);
        const Ledger part = window(ledger, first.draw_begin_ns, last.draw_begin_ns + last.draw_ns + last.batch_ns);
        BOOST_TEST_CONTEXT(one.stem) {
            BOOST_TEST(part.steps.size() == 2u);
            BOOST_TEST(part.operators.size() > 100u);
            BOOST_TEST(part.operators.size() < ledger.operators.size() / 2);
            BOOST_TEST(max_residual_ns(part) == 0);
            for (const OperatorAverage& row : key_averages(part))
                if (row.key == "forward" || row.key.starts_with("Optimizer."))
                    BOOST_TEST(row.count == 2u);
        }
    }
}

BOOST_AUTO_TEST_CASE(the_recorded_stack_table_is_printed_byte_for_byte_from_its_own_figures) {
    for (const golden::Path& folder : golden::folders()) {
        const std::string expected = read_table(folder / "g6_kineto" / "stack_linear16.table_stack5.txt");
        const std::vector<std::string> lines = lines_of(expected);
        std::vector<OperatorAverage> averages;
        double self_us = 0;
        const auto cell = [](const std::string& line, std::size_t at, std::size_t width) {
            const std::string text = line.substr(at, width);
            const std::size_t from = text.find_first_not_of(' ');
            return from == std::string::npos ? std::string{} : text.substr(from, text.find_last_not_of(' ') - from + 1);
        };
        const auto microseconds = [](const std::string& text) {
            return std::stod(text) * (text.ends_with("ms") ? 1e3 : 1);
        };
        constexpr std::size_t name_width = 55, first_column = name_width + 2, column = 14,
                              source = first_column + 6 * column;
        for (std::size_t i = 3; i + 2 < lines.size(); ++i) {
            const std::string name = cell(lines[i], 0, name_width), frame = cell(lines[i], source, 200);
            if (!name.empty()) {
                OperatorAverage& row = averages.emplace_back();
                // A name that was cut went on with letters we do not know.
                row.key = name.ends_with("...") ? name.substr(0, name.size() - 3) + "unknown rest" : name;
                row.self_cpu_us = microseconds(cell(lines[i], first_column + column, 12));
                row.cpu_us = microseconds(cell(lines[i], first_column + 3 * column, 12));
                row.count = std::stoull(cell(lines[i], first_column + 5 * column, 12));
                self_us += row.self_cpu_us;
            }
            if (!frame.empty())
                averages.back().stack.push_back(frame.starts_with("...") ? "unknown beginning" + frame.substr(3)
                                                                         : frame);
        }
        const auto shown = static_cast<std::int64_t>(averages.size());
        BOOST_TEST_REQUIRE(shown == 8);
        // The rows that the limit of eight left out: together what the footer's total and the shares leave.
        averages.push_back({.key = "all the others", .count = 1, .self_cpu_us = 1715.06 - self_us});
        const std::string ours = table(averages, {.row_limit = shown, .max_src_column_width = 60});
        BOOST_TEST(lines_of(ours) == lines_of(expected), boost::test_tools::per_element());
        BOOST_TEST((ours == expected));
    }
}

BOOST_AUTO_TEST_CASE(the_recorded_folded_stacks_come_back_from_rows_with_those_callers) {
    for (const golden::Path& folder : golden::folders()) {
        const std::string expected =
            golden::read_text(folder / "g6_kineto" / "stack_linear16.stacks_self_cpu_time_total.txt");
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
                // "file.py(81):_function": the first mark after the colon was a blank.
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
    }
}

BOOST_AUTO_TEST_SUITE_END()
