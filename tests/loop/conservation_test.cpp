// In random fits every nanosecond of the clock must be in exactly one piece. One recorder serves many cases, since each
// recorder has a thread.

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <string>

#include "loop/random_fits.hpp"
#include "support/sanitized.hpp"

namespace drawpoint {
namespace {

using test::Spent;

constexpr std::size_t cases = test::sanitized ? 2'000 : 100'000;
constexpr std::size_t cases_per_recorder = 2'000;

std::string check(const Ledger& ledger, std::int64_t wall_ns, const Spent& spent) {
    std::int64_t fits_ns = 0;
    for (const PassRow& pass : ledger.passes)
        fits_ns += pass.kind == PassKind::fit ? pass.end_ns - pass.begin_ns : 0;
    if (fits_ns != wall_ns)
        return "the fits took " + std::to_string(wall_ns) + " ns and say " + std::to_string(fits_ns);
    if (max_residual_ns(ledger) != 0)
        return "a pass has a residual of " + std::to_string(max_residual_ns(ledger)) + " ns";
    for (const StepRow& step : ledger.steps) {
        std::int64_t at_ns = step.draw_begin_ns, between_ns = 0;
        for (const SpanRow& piece : ledger.spans_of(step)) {
            if (piece.begin_ns != at_ns || piece.ns < 0)
                return "the pieces of step " + std::to_string(step.step) + " do not tile it";
            at_ns += piece.ns;
            between_ns = piece.span == Span::between ? between_ns + piece.ns : 0;
        }
        if (at_ns - between_ns - step.draw_begin_ns != step.draw_ns + step.batch_ns)
            return "step " + std::to_string(step.step) + " is not the sum of its pieces";
    }
    Spent recorded;
    for (const SpanRow& piece : ledger.spans)
        recorded[piece.span] += piece.ns;
    for (const auto& [span, ns] : spent)
        if (recorded[span] != ns)
            return std::string(name_of(span)) + " took " + std::to_string(ns) + " ns and says " +
                   std::to_string(recorded[span]);
    return ledger.dropped_records() == 0 ? "" : "records were dropped";
}

/// Describes the first piece that does not add up in these cases; empty if all do.
std::string run_cases(std::uint32_t first, std::size_t count) {
    ManualClock clock{1};
    Recorder recorder{RecorderOptions{.ring_records = 1u << 16}, AnyClock{clock}};
    Spent spent;
    std::int64_t wall_ns = 0;
    for (std::size_t i = 0; i < count; ++i)
        wall_ns += test::run_random_fit(first + static_cast<std::uint32_t>(i), clock, recorder, spent);
    return check(recorder.ledger(), wall_ns, spent);
}

}   // namespace

BOOST_AUTO_TEST_SUITE(conservation)

BOOST_AUTO_TEST_CASE(every_nanosecond_of_any_schedule_is_in_exactly_one_piece) {
    for (std::size_t first = 0; first < cases; first += cases_per_recorder) {
        const std::string wrong = run_cases(static_cast<std::uint32_t>(first + 1), cases_per_recorder);
        if (wrong.empty())
            continue;
        for (std::size_t i = 0; i < cases_per_recorder; ++i) {   // finds the case at fault
            const auto seed = static_cast<std::uint32_t>(first + 1 + i);
            const std::string alone = run_cases(seed, 1);
            BOOST_REQUIRE_MESSAGE(alone.empty(), "seed " << seed << ": " << alone);
        }
        BOOST_ERROR("seeds from " << first + 1 << ", only together: " << wrong);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
