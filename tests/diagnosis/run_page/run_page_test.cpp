#include <drawpoint/diagnosis/run_page/run_page.hpp>

#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/diagnosis/verdict/verdict_report.hpp>
#include <drawpoint/instrumentation/report/json.hpp>

#include "diagnosis/blame/drawn_ledger.hpp"

namespace drawpoint {
namespace {

using Json = nlohmann::ordered_json;

/// Two workers make batches of two samples that take 300 ns each; the loop takes 100 ns a step and waits for the rest.
Ledger waiting_run(std::uint32_t steps) {
    test::DrawnLedger drawn{2, 1};
    std::int64_t at_ns = 1000;
    for (std::uint32_t i = 0; i < steps; ++i) {
        const std::int64_t made_ns = at_ns + 300;
        BatchRow& batch = drawn.batch(i);
        batch.admitted_ns = batch.first_claim_ns = at_ns;
        batch.last_done_ns = batch.offered_ns = made_ns;
        batch.taken_ns = made_ns + 5;
        drawn.sample(i, 0, 0, at_ns, {100, 200});
        drawn.sample(i, 1, 1, at_ns, {100, 150});
        drawn.step(i, at_ns, {{Span::starved, 300}, {Span::handoff, 5}, {Span::forward, 60}, {Span::backward, 40}});
        at_ns += 405;
    }
    drawn.ledger.passes.push_back({.kind = PassKind::train, .begin_ns = 1000, .end_ns = at_ns});
    drawn.ledger.sort();
    return drawn.ledger;
}

/// All numbers of the page: the values of its elements `data`, as texts.
std::set<std::string> values_in(std::string_view page) {
    std::set<std::string> values;
    constexpr std::string_view mark = "<data value=\"";
    for (std::size_t at = page.find(mark); at != page.npos; at = page.find(mark, at + 1))
        values.emplace(page.substr(at + mark.size(), page.find('"', at + mark.size()) - at - mark.size()));
    return values;
}

/// All numbers of a document, in the shortest form that reads back.
void add_numbers(const Json& of, std::set<double>& numbers) {
    if (of.is_number())
        numbers.insert(of.get<double>());
    else
        for (const Json& part : of)
            if (part.is_structured() || part.is_number())
                add_numbers(part, numbers);
}

/// What is wrong with the nesting of the elements; empty: nothing.
std::string fault_of(std::string_view page) {
    static const std::set<std::string, std::less<>> alone{"meta", "link", "!DOCTYPE", "br"};
    std::vector<std::string> open;
    for (std::size_t at = page.find('<'); at != page.npos; at = page.find('<', at)) {
        if (!open.empty() && open.back() == "script") {   // its text is no markup
            at = page.find("</script>", at);
            if (at == page.npos)
                return "an open script";
        }
        const std::size_t end = page.find('>', at);
        if (end == page.npos)
            return "an open tag";
        const std::string_view tag = page.substr(at + 1, end - at - 1);
        const std::string name{tag.substr(tag[0] == '/', tag.find_first_of(" /\n", 1) - (tag[0] == '/'))};
        if (tag[0] == '/') {
            if (open.empty() || open.back() != name)
                return "</" + name + "> where " + (open.empty() ? "nothing" : open.back()) + " is open";
            open.pop_back();
        } else if (!tag.ends_with('/') && !alone.contains(name)) {
            open.push_back(name);
        }
        at = end;
    }
    return open.empty() ? "" : open.back() + " is left open";
}

struct Made {
    Ledger ledger;
    Summary summary;
    Diagnosis diagnosis;
    std::string page;
};

Made made_of(Ledger ledger, const Whatif* whatif = nullptr) {
    Made made{std::move(ledger), {}, {}, {}};
    made.summary = summarize(made.ledger);
    made.diagnosis = diagnose(made.ledger);
    made.page =
        to_html(made.ledger, made.summary,
                {.title = "a run", .version = "1", .command = "c", .diagnosis = &made.diagnosis, .whatif = whatif});
    return made;
}

BOOST_AUTO_TEST_SUITE(run_page)

BOOST_AUTO_TEST_CASE(every_number_of_the_page_is_one_of_the_report) {
    const Made made = made_of(waiting_run(80));
    BOOST_TEST(fault_of(made.page) == "");
    std::set<double> numbers;
    add_numbers(to_json(made.summary, {.version = "1", .command = "c"}), numbers);
    add_numbers(to_json(made.diagnosis, {.version = "1", .command = "c"}, made.summary.machine), numbers);
    numbers.insert(*made.summary.headroom.draw_share);
    for (const SlowSample& sample : made.diagnosis.blame.slow_samples) {
        numbers.insert(static_cast<double>(sample.stall_ns) / 1e9);
        numbers.insert(sample.times);
    }
    const std::set<std::string> values = values_in(made.page);
    BOOST_TEST(values.size() > 30u);
    for (const std::string& value : values)
        BOOST_TEST(numbers.contains(std::strtod(value.c_str(), nullptr)),
                   value << " is in no report: " << made.page.substr(made.page.find("\"" + value + "\"") - 200, 260));
    // And those that a reader looks for are there.
    const auto has = [&](double value) { return values.contains(fmt::format("{}", value)); };
    for (const SummaryRow& row : made.summary.rows)
        BOOST_TEST((has(row.mean_s) && has(row.p99_s) && has(row.total_s)), row.phase << " " << name_of(row.action));
    for (const BlameRow& row : made.diagnosis.blame_rows)
        BOOST_TEST((row.ns == 0 || has(static_cast<double>(row.ns) / 1e9)), row.cause);
    BOOST_TEST(made.page.find(to_string(made.diagnosis.verdict)) != std::string::npos);
}

BOOST_AUTO_TEST_CASE(it_asks_for_nothing_and_no_name_can_act_in_it) {
    Ledger ledger = waiting_run(60);
    ledger.pipelines[0].stages = {"<script>alert(1)</script>", "\"onload=\"x"};
    ledger.set_fact("option.data", "</td><img src=x>");
    ledger.failures.push_back({.index = 3, .path = "a<b>\x1b[31m", .stage = "read", .message = "&amp;"});
    const Made made = made_of(ledger);
    BOOST_TEST(fault_of(made.page) == "");
    for (const char* const foreign : {"<script>alert", "<img", "url(http", "\x1b", "\"onload"})
        BOOST_TEST(made.page.find(foreign) == std::string::npos, foreign);
    std::size_t addresses = 0;   // the name of the format of pictures is the only one
    for (std::size_t at = made.page.find("http"); at != std::string::npos; at = made.page.find("http", at + 1))
        addresses += made.page.substr(at, 26) != "http://www.w3.org/2000/svg" ? 1 : 0;
    BOOST_TEST(addresses == 0u);
    BOOST_TEST(made.page.find("a&lt;b&gt;\\x1b[31m") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_a_run_lacks_is_left_out) {
    for (const Ledger& ledger : {Ledger{}, waiting_run(1), waiting_run(6)}) {
        const Made made = made_of(ledger);
        BOOST_TEST(fault_of(made.page) == "");
        const std::string bare = to_html(ledger, made.summary, {.title = "x", .version = "1", .command = "c"});
        BOOST_TEST(fault_of(bare) == "");
        BOOST_TEST(bare.find("No verdict") != std::string::npos);
        for (std::size_t i = 0; i < run_picture_count; ++i) {
            const auto picture = static_cast<RunPicture>(i);
            if (picture != RunPicture::flame || ledger.steps.size() != 1)   // whose pieces are below a microsecond
                BOOST_TEST(to_svg(ledger, made.summary, &made.diagnosis, picture).has_value() == !ledger.steps.empty(),
                           name_of(picture));
        }
    }
    BOOST_TEST(made_of(waiting_run(80)).page.find("The longest draws") != std::string::npos);
    BOOST_CHECK_THROW((void)explain_svg({}, {}), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(rows_of_loaders_that_there_are_not_are_no_harm) {
    Ledger ledger = waiting_run(60);
    for (SampleRow& row : ledger.samples)
        row.pipeline = row.index % 2 == 0 ? 5 : 0;
    ledger.pipelines[0].stages = {"read"};   // samples have two
    ledger.sort();
    const Made made = made_of(ledger);
    BOOST_TEST(fault_of(made.page) == "");
    ledger.pipelines[0].stages.clear();
    BOOST_TEST(fault_of(made_of(ledger).page) == "");
}

BOOST_AUTO_TEST_CASE(pictures_alone_are_files_of_svg_and_have_their_words) {
    const Made made = made_of(waiting_run(80));
    const auto drawn = [&](RunPicture picture) {
        return to_svg(made.ledger, made.summary, &made.diagnosis, picture).value();
    };
    for (std::size_t i = 0; i < run_picture_count; ++i) {
        const std::string svg = drawn(static_cast<RunPicture>(i));
        BOOST_TEST(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
        BOOST_TEST(fault_of(svg) == "");
        BOOST_TEST(svg.find("aria-label=\"") != std::string::npos);
    }
    BOOST_TEST(drawn(RunPicture::steps).find(">draw: ") != std::string::npos);
    BOOST_TEST(drawn(RunPicture::workers).find(">worker 1<") != std::string::npos);
    BOOST_TEST(drawn(RunPicture::draws).find(">median 305 ns<") != std::string::npos, drawn(RunPicture::draws));
    BOOST_TEST(drawn(RunPicture::flame).find("starved") != std::string::npos);
    const std::string one = explain_svg(made.ledger, made.diagnosis.blame, 7);
    BOOST_TEST(fault_of(one) == "");
    BOOST_TEST(one.find(">sample 701, worker 1<") != std::string::npos);
    BOOST_CHECK_THROW((void)explain_svg(made.ledger, made.diagnosis.blame, 80), std::invalid_argument);
}

BOOST_AUTO_TEST_CASE(a_long_run_is_a_page_of_less_than_a_megabyte) {
    const Ledger ledger = waiting_run(100'000);
    const Summary summary = summarize(ledger);
    const Diagnosis diagnosis = diagnose(ledger, {.most_samples = 100'000});
    const std::string page =
        to_html(ledger, summary, {.title = "long", .version = "1", .command = "c", .diagnosis = &diagnosis});
    BOOST_TEST(fault_of(page) == "");
    BOOST_TEST(page.size() < 1'000'000u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
