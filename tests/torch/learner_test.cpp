#include <drawpoint/loop/torch/learner.hpp>

#include <cmath>
#include <vector>

#include <ATen/autocast_mode.h>
#include <boost/test/unit_test.hpp>
#include <torch/nn/modules.h>

#include <drawpoint/loop/fit.hpp>
#include <drawpoint/loop/learner.hpp>
#include <drawpoint/loop/torch/model.hpp>

#include "torch/drawn.hpp"

BOOST_AUTO_TEST_SUITE(learner)

using namespace drawpoint;
using test::Drawn;

namespace {

static_assert(Learner<TorchLearner, Batch>);

void step(TorchLearner& learner, Batch& batch, bool training = true) {
    learner.forward(batch);
    learner.loss(batch);
    if (!training)
        return;
    learner.backward();
    learner.opt_step();
    learner.zero_grad();
}

/// The loss after `steps` of training on a problem with three classes, each at its own point in the plane.
double loss_after(std::size_t steps, const LearnerOptions& options) {
    const auto points = from_function(60, {ScalarType::float32, 1, {2}}, "points", [](SampleView& sample) {
        const auto label = sample.index % 3;
        sample.floats()[0] = (label == 1 ? 2.0F : 0.0F) + static_cast<float>(sample.random.uniform() - 0.5);
        sample.floats()[1] = (label == 2 ? 2.0F : 0.0F) + static_cast<float>(sample.random.uniform() - 0.5);
        *sample.target = static_cast<std::int64_t>(label);
    });
    Drawn drawn{points, 20};
    TorchLearner learner{mlp(2, 3, {16}, 1), options};
    learner.begin_phase(true);
    for (std::size_t i = 0; i < steps; ++i) {
        Batch batch = drawn.next();
        step(learner, batch);
    }
    BOOST_TEST(drawn.loader().counters().slots_replaced == 0u);
    return learner.loss_value();
}

/// A model whose largest output is the sample's largest value.
struct Identity : torch::nn::Module {
    Identity() { scale = register_parameter("scale", torch::ones({1})); }
    at::Tensor forward(const at::Tensor& x) { return x * scale; }
    at::Tensor scale;
};

}   // namespace

BOOST_AUTO_TEST_CASE(the_loss_falls_with_either_optimizer) {
    const LearnerOptions sgd{.optimizer = Optimizer::sgd, .learning_rate = 0.1};
    const LearnerOptions adam{.optimizer = Optimizer::adam, .learning_rate = 0.02};
    for (const LearnerOptions& options : {sgd, adam}) {
        const double first = loss_after(1, options), last = loss_after(100, options);
        BOOST_TEST(first > 0.5);
        BOOST_TEST(last < 0.1);
    }
}

BOOST_AUTO_TEST_CASE(equal_seeds_give_equal_runs) { BOOST_TEST(loss_after(20, {}) == loss_after(20, {})); }

BOOST_AUTO_TEST_CASE(accuracy_counts_the_phase_at_hand) {
    // The largest values of the four samples are at 0, 1, 0, 1; the labels are 0, 0, 0, 1: three are right.
    const auto rows = from_function(4, {ScalarType::float32, 1, {2}}, "rows", [](SampleView& sample) {
        sample.floats()[0] = sample.index % 2 == 0 ? 1.0F : 0.0F;
        sample.floats()[1] = 0.5F;
        *sample.target = sample.index == 3 ? 1 : 0;
    });
    Drawn drawn{rows, 4};
    TorchLearner learner{model_of(std::make_shared<Identity>())};
    BOOST_TEST(std::isnan(learner.loss_value()));
    learner.begin_phase(false);
    BOOST_TEST(learner.metrics().accuracy() == 0);
    for (std::uint64_t i = 1; i <= 3; ++i) {
        Batch batch = drawn.next();
        step(learner, batch, false);
        BOOST_TEST(learner.metrics().correct == 3 * i);
        BOOST_TEST(learner.metrics().seen == 4 * i);
    }
    BOOST_TEST(learner.metrics().accuracy() == 0.75);
    learner.begin_phase(true);
    BOOST_TEST(learner.metrics().seen == 0u);
    BOOST_TEST(learner.metrics().correct == 0u);
}

BOOST_AUTO_TEST_CASE(top_k_and_mean_loss_count_the_phase_at_hand) {
    // Each sample has four values; the target's value ranks 1, 2, 3, 4 in them.
    const auto rows = from_function(4, {ScalarType::float32, 1, {4}}, "rows", [](SampleView& sample) {
        for (std::size_t i = 0; i < 4; ++i)
            sample.floats()[i] = static_cast<float>(i);
        *sample.target = static_cast<std::int64_t>(3 - sample.index);
    });
    const auto fraction = [&](std::size_t k) {
        Drawn drawn{rows, 2};
        TorchLearner learner{model_of(std::make_shared<Identity>()), {.top_k = k}};
        learner.begin_phase(false);
        double losses = 0;
        for (int i = 0; i < 2; ++i) {
            Batch batch = drawn.next();
            step(learner, batch, false);
            losses += learner.loss_value();
        }
        BOOST_TEST(learner.metrics().mean_loss() == losses / 2, boost::test_tools::tolerance(1e-6));
        const double share = learner.metrics().top_k_accuracy();
        learner.begin_phase(false);
        BOOST_TEST(learner.metrics().loss_sum == 0);
        BOOST_TEST(learner.metrics().in_top_k == 0u);
        return share;
    };
    BOOST_TEST(fraction(0) == 0);
    BOOST_TEST(fraction(1) == 0.25);
    BOOST_TEST(fraction(3) == 0.75);
    BOOST_TEST(fraction(9) == 1);   // more than the number of classes
}

BOOST_AUTO_TEST_CASE(gradients_scaled_by_their_batchs_share_add_up_to_those_of_one_large_batch) {
    const auto source = test::numbered(4);
    const auto gradient = [&](std::size_t batch_size) {
        Drawn drawn{source, batch_size};
        const auto module = std::make_shared<torch::nn::LinearImpl>(2, 4);
        const at::NoGradGuard no_graph;
        module->weight.fill_(0.1);
        module->bias.fill_(0);
        TorchLearner learner{model_of(module)};
        learner.begin_phase(true);
        for (std::size_t seen = 0; seen < 4; seen += batch_size) {
            Batch batch = drawn.next();
            learner.forward(batch);
            learner.loss(batch);
            const double loss = learner.loss_value();
            learner.scale_gradients(static_cast<double>(batch_size) / 4);
            learner.backward();
            BOOST_TEST(learner.loss_value() == loss);
            learner.end_batch();
        }
        BOOST_TEST(drawn.loader().counters().slots_replaced == 0u);
        return module->weight.grad().clone();
    };
    BOOST_TEST(at::allclose(gradient(1), gradient(4), 1e-4, 1e-6));
}

BOOST_AUTO_TEST_CASE(clipping_brings_the_norm_of_all_gradients_down_to_its_limit) {
    const auto source = test::numbered(4);
    Drawn drawn{source, 4};
    const auto module = std::make_shared<torch::nn::LinearImpl>(2, 4);
    TorchLearner learner{model_of(module)};
    learner.begin_phase(true);
    Batch batch = drawn.next();
    learner.forward(batch);
    learner.loss(batch);
    learner.backward();
    const double norm = learner.clip_gradients(1e9);
    BOOST_TEST(norm > 0.01);
    BOOST_TEST(learner.clip_gradients(norm / 2) == norm, boost::test_tools::tolerance(1e-5));
    BOOST_TEST(learner.clip_gradients(1e9) == norm / 2, boost::test_tools::tolerance(1e-4));
}

BOOST_AUTO_TEST_CASE(the_learning_rate_that_is_set_is_the_one_that_steps) {
    for (const Optimizer optimizer : {Optimizer::adam, Optimizer::sgd}) {
        const auto source = test::numbered(4);
        Drawn drawn{source, 4};
        const auto module = std::make_shared<torch::nn::LinearImpl>(2, 4);
        TorchLearner learner{model_of(module), {.optimizer = optimizer, .learning_rate = 0.5}};
        BOOST_TEST(learner.learning_rate() == 0.5);
        learner.set_learning_rate(0);
        BOOST_TEST(learner.learning_rate() == 0);
        const at::Tensor before = module->weight.detach().clone();
        learner.begin_phase(true);
        Batch batch = drawn.next();
        step(learner, batch);
        BOOST_TEST(at::equal(module->weight, before));
        BOOST_CHECK_THROW(learner.set_learning_rate(-1), std::invalid_argument);
    }
}

BOOST_AUTO_TEST_CASE(a_batch_cancelled_at_any_point_leaves_its_memory_free) {
    class CancelAt final : public Callback {
    public:
        explicit CancelAt(Event event) : event_{event} {}
        std::string_view name() const noexcept override { return "CancelAt"; }
        EventSet events() const noexcept override { return {event_}; }
        void on(Event, LoopState&) override { throw CancelBatch{}; }

    private:
        Event event_;
    };
    const auto rows = from_function(40, {ScalarType::float32, 1, {2}}, "rows", [](SampleView& sample) {
        sample.floats()[0] = sample.floats()[1] = 1;
        *sample.target = static_cast<std::int64_t>(sample.index % 2);
    });
    for (const Event event : {Event::after_pred, Event::after_loss, Event::before_backward, Event::before_step}) {
        Recorder recorder;
        Runtime runtime{{.max_threads = 1, .workers = WorkerThreads::threads}, recorder};
        const SequentialSampler order{rows.size()};
        DataLoader loader{runtime, rows, order, {.batch_size = 4, .num_workers = 0, .prefetch_depth = 1}};
        TorchLearner learner{model_of(std::make_shared<Identity>())};   // the graph keeps the samples themselves alive
        CancelAt cancel{event};
        CallbackList callbacks;
        callbacks.add(cancel);
        run(runtime, fit(learner, loader, FitOptions{.record_loss = false}, callbacks, recorder));
        BOOST_TEST(loader.counters().batches_taken == 10u);
        BOOST_TEST(loader.counters().slots_replaced == 0u);
    }
}

BOOST_AUTO_TEST_CASE(validation_changes_no_weight_and_builds_no_graph) {
    const auto source = test::numbered(4);
    Drawn drawn{source, 4};
    const auto module = std::make_shared<torch::nn::LinearImpl>(2, 4);
    const at::Tensor before = module->weight.detach().clone();
    TorchLearner learner{model_of(module)};
    learner.begin_phase(false);
    Batch batch = drawn.next();
    step(learner, batch, false);
    BOOST_TEST(std::isfinite(learner.loss_value()));
    BOOST_TEST(torch::equal(module->weight, before));
    BOOST_CHECK_THROW(learner.backward(), c10::Error);
    BOOST_TEST(!module->is_training());
}

BOOST_AUTO_TEST_CASE(bytes_are_taken_as_values_from_0_to_1) {
    const auto rows = from_function(1, {ScalarType::uint8, 1, {2}}, "rows", [](SampleView& sample) {
        sample.data[0] = std::byte{255};
        sample.data[1] = std::byte{0};
    });
    Drawn drawn{rows, 1};
    TorchLearner learner{model_of(std::make_shared<Identity>())};
    Batch batch = drawn.next();
    step(learner, batch, false);
    BOOST_TEST(learner.loss_value() == std::log1p(std::exp(-1.0)), boost::test_tools::tolerance(1e-5));
}

BOOST_AUTO_TEST_CASE(each_model_trains_on_images) {
    const SyntheticImages images{8, 3, 64};
    for (const Model& model : {small_cnn(3), resnet18(3), resnet50(3), mlp(3 * 64 * 64, 3)}) {
        Drawn drawn{images, 8};
        TorchLearner learner{model, {.learning_rate = 1e-3}};
        learner.begin_phase(true);
        double first = 0;
        for (int i = 0; i < 8; ++i) {
            Batch batch = drawn.next();
            step(learner, batch);
            first = i == 0 ? learner.loss_value() : first;
        }
        BOOST_TEST(learner.loss_value() < 0.8 * first);
        BOOST_TEST(drawn.loader().counters().slots_replaced == 0u);
    }
}

BOOST_AUTO_TEST_CASE(resnets_are_the_published_networks) {
    BOOST_TEST(resnet18(1000).num_parameters() == 11'689'512u);
    BOOST_TEST(resnet50(1000).num_parameters() == 25'557'032u);
}

BOOST_AUTO_TEST_CASE(bf16_computes_products_in_bfloat16_and_all_else_in_float32) {
    const SyntheticImages images{8, 3, 64};
    std::vector<at::ScalarType> seen;
    const auto look = [&](const at::Tensor& x) {
        seen.push_back(x.scalar_type());
        return x;
    };
    torch::nn::Sequential net{torch::nn::Flatten{}, torch::nn::Linear{3 * 64 * 64, 3}, torch::nn::Functional{look}};
    Drawn drawn{images, 8};
    TorchLearner learner{model_of(net), {.bf16 = true}};
    learner.begin_phase(true);
    double first = 0;
    for (int i = 0; i < 8; ++i) {
        Batch batch = drawn.next();
        step(learner, batch);
        first = i == 0 ? learner.loss_value() : first;
    }
    BOOST_TEST((seen == std::vector<at::ScalarType>(8, at::kBFloat16)));
    BOOST_TEST(learner.loss_value() < 0.8 * first);
    BOOST_TEST(!at::autocast::is_autocast_enabled(at::kCPU));
    for (const at::Tensor& weight : net->parameters())
        BOOST_TEST((weight.scalar_type() == at::kFloat));
}

BOOST_AUTO_TEST_CASE(a_target_that_is_no_class_is_named) {
    const auto source = test::numbered(4);
    Drawn drawn{source, 4};
    TorchLearner learner{mlp(2, 3, {})};
    Batch batch = drawn.next();
    learner.forward(batch);
    BOOST_CHECK_EXCEPTION(learner.loss(batch), std::invalid_argument, [](const auto& error) {
        return std::string{error.what()} == "target 3 is none of the model's 3 classes";
    });
}

BOOST_AUTO_TEST_CASE(options_out_of_range_are_refused_by_name) {
    const auto refusal = [](const LearnerOptions& options) -> std::string {
        try {
            TorchLearner{mlp(1, 1), options};
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "taken";
    };
    BOOST_TEST(refusal({.learning_rate = 0}) == "learning_rate must be above 0, got 0");
    BOOST_TEST(refusal({.momentum = 1}) == "momentum must be at least 0 and below 1, got 1");
    BOOST_TEST(refusal({.weight_decay = -1}) == "weight_decay must be at least 0, got -1");
    BOOST_TEST(refusal({.threads = -2}) == "threads must be at least 1, or 0 for no change, got -2");
    BOOST_CHECK_THROW((void)small_cnn(0), std::invalid_argument);
}

BOOST_AUTO_TEST_SUITE_END()
