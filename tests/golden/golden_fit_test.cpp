// The recorded inputs of the original, replayed through fit on a clock that moves by exactly the recorded costs.

#include <drawpoint/instrumentation/report/fastxtend.hpp>
#include <drawpoint/loop/fit.hpp>

#include <boost/test/unit_test.hpp>

#include <golden/fastxtend_cases.hpp>

#include "support/tape.hpp"

namespace {

using namespace drawpoint;
using golden::Json;

std::int64_t cost_of(const Json& batch, const char* stage) {
    return batch.contains(stage) ? batch.at(stage).get<std::int64_t>() : 0;
}

/// Plays the recorded costs of each batch in the order in which batches are drawn.
struct ReplayLearner {
    ManualClock* clock;
    const Json* input;
    std::size_t training_epoch = 0, validation_epoch = 0, next = 0;
    const Json* pass = nullptr;
    const Json* batch = nullptr;

    void begin_phase(bool training) {
        pass = training ? &input->at("train").at(training_epoch++) : &input->at("valid").at(validation_epoch++);
        next = 0;
    }
    void forward(const test::TapeBatch&) {
        batch = &pass->at(next++);
        advance("forward"), advance("predict");   // a batch has one of the two
    }
    void loss(const test::TapeBatch&) { advance("loss"); }
    void backward() { advance("backward"); }
    void opt_step() { advance("opt_step"); }
    void zero_grad() { advance("zero_grad"); }
    [[nodiscard]] double loss_value() const { return 0; }

    void advance(const char* stage) const { clock->advance(std::chrono::nanoseconds{cost_of(*batch, stage)}); }
};

test::Tape::Epochs draws_of(const Json& epochs) {
    test::Tape::Epochs all;
    for (const Json& epoch : epochs) {
        auto& draws = all.emplace_back();
        for (const Json& batch : epoch) {
            const Json& size =
                batch.contains("bs_x") ? batch.at("bs_x") : batch.at("bs");   // of the input, not the target
            draws.push_back(
                {.starved = std::chrono::nanoseconds{cost_of(batch, "draw")}, .size = size.get<std::size_t>()});
        }
    }
    return all;
}

Ledger replay(const Json& input) {
    const auto start = input.contains("clock_start_ns") ? input.at("clock_start_ns").get<std::int64_t>() : 0;
    ManualClock clock{start};
    Recorder recorder{RecorderOptions{}, AnyClock{clock}};
    ReplayLearner learner{.clock = &clock, .input = &input};
    CallbackList callbacks;
    test::Tape train{clock, draws_of(input.at("train"))}, valid{clock, draws_of(input.at("valid"))};
    const FitOptions options{.epochs = input.at("epochs").get<std::size_t>()};
    test::run_alone(fit(learner, train, valid, options, callbacks, recorder));
    return recorder.ledger();
}

}   // namespace

BOOST_AUTO_TEST_SUITE(golden_fit)

BOOST_AUTO_TEST_CASE(a_replayed_fit_reports_what_the_original_reported_byte_for_byte) {
    for (const golden::Case& one : golden::plain_fits())
        BOOST_TEST_CONTEXT(one.path.string()) {
            const Ledger ledger = replay(one.input);
            const auto report =
                fastxtend_report(fastxtend_values(ledger), golden::mode_of(one), golden::drops_first_batch(one));
            if (one.failed()) {   // a defect of the original: ours gives the report, with "-" where there is nothing to say
                BOOST_TEST(to_plain(report).find(" - ") != std::string::npos);
                continue;
            }
            BOOST_TEST(to_plain(report) == *one.plain);
            BOOST_TEST(to_markdown(report) == *one.markdown);
            BOOST_TEST(to_csv(report) == *one.csv);
        }
}

BOOST_AUTO_TEST_CASE(a_replayed_fit_accounts_for_every_nanosecond) {
    for (const golden::Case& one : golden::plain_fits())
        BOOST_TEST_CONTEXT(one.path.string())
    BOOST_TEST(max_residual_ns(replay(one.input)) == 0);
}

BOOST_AUTO_TEST_CASE(the_recorded_durations_are_the_ones_the_original_recorded) {
    for (const golden::Case& one : golden::plain_fits())
        if (!one.failed() && one.output.contains("raw_values"))
            BOOST_TEST_CONTEXT(one.path.string()) {
                const FastxtendValues ours = fastxtend_values(replay(one.input));
                const FastxtendValues theirs = golden::values_of(one.output.at("raw_values"));
                BOOST_TEST(*ours.fit == *theirs.fit);
                BOOST_TEST(ours.epoch == theirs.epoch, boost::test_tools::per_element());
                BOOST_TEST(ours.train == theirs.train, boost::test_tools::per_element());
                BOOST_REQUIRE_EQUAL(ours.train_batches.size(), theirs.train_batches.size());
                for (std::size_t i = 0; i < ours.train_batches.size(); ++i) {
                    BOOST_TEST(ours.train_batches[i].size == theirs.train_batches[i].size);
                    BOOST_TEST(ours.train_batches[i].draw == theirs.train_batches[i].draw);
                    BOOST_TEST(ours.train_batches[i].batch == theirs.train_batches[i].batch);
                    if (golden::mode_of(one) == ProfileMode::throughput)
                        continue;   // the original measured no stages
                    BOOST_TEST((ours.train_batches[i].backward == theirs.train_batches[i].backward));
                    BOOST_TEST((ours.train_batches[i].zero_grad == theirs.train_batches[i].zero_grad));
                }
            }
}

BOOST_AUTO_TEST_SUITE_END()
