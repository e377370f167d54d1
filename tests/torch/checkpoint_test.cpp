#include <drawpoint/loop/callbacks/checkpoint.hpp>

#include <boost/test/unit_test.hpp>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <filesystem>
#include <string>
#include <vector>

#include <drawpoint/loop/callbacks/gradient_accumulation.hpp>
#include <drawpoint/loop/callbacks/learning_rate_schedule.hpp>
#include <drawpoint/loop/fit.hpp>
#include <drawpoint/loop/torch/learner.hpp>
#include <drawpoint/loop/torch/model.hpp>

#include "support/temporary_folder.hpp"
#include "torch/drawn.hpp"

BOOST_AUTO_TEST_SUITE(checkpoint)

using namespace drawpoint;

namespace {

using Net = torch::nn::Sequential;

/// Has running means, which are not parameters, and dropout, which uses LibTorch's random state.
Net net_of(std::int64_t hidden, std::int64_t seed) {
    torch::manual_seed(static_cast<std::uint64_t>(seed));
    return Net{torch::nn::Linear{2, hidden}, torch::nn::BatchNorm1d{hidden}, torch::nn::Dropout{0.3},
               torch::nn::Linear{hidden, 3}};
}

/// Everything that a training run needs, with shuffled data; batches of 7, 7, 7 and 3.
struct Run {
    Run(std::int64_t seed, const LearnerOptions& options) : net{net_of(5, seed)}, learner{model_of(net), options} {}

    void fit(std::size_t first_epoch, std::size_t epochs) {
        Recorder recorder;
        Runtime runtime{{.max_threads = 1, .workers = WorkerThreads::threads}, recorder};
        const auto rows = from_function(24, {ScalarType::float32, 1, {2}}, "rows", [](SampleView& sample) {
            sample.floats()[0] = static_cast<float>(sample.random.uniform());
            sample.floats()[1] = static_cast<float>(sample.index);
            *sample.target = static_cast<std::int64_t>(sample.index % 3);
        });
        const RandomSampler order{rows.size(), 11};
        DataLoader loader{runtime, rows, order, {.batch_size = 7, .num_workers = 0}};
        CallbackList callbacks;
        callbacks.add(schedule);
        callbacks.add(accumulation);
        const FitOptions options{.epochs = epochs, .first_epoch = first_epoch};
        run(runtime, drawpoint::fit(learner, loader, options, callbacks, recorder));
    }
    [[nodiscard]] std::vector<at::Tensor> weights() const {
        std::vector<at::Tensor> all = net->parameters();
        for (const at::Tensor& buffer : net->buffers())
            all.push_back(buffer);
        return all;
    }

    Net net;
    TorchLearner learner;
    LearningRateSchedule<TorchLearner> schedule{learner, one_cycle(0.05, 16)};
    GradientAccumulation<TorchLearner> accumulation{learner, 11};
    std::vector<Stateful*> states{&schedule, &accumulation};
};

bool equal(const Run& a, const Run& b) {
    const std::vector<at::Tensor> x = a.weights(), y = b.weights();
    bool same = x.size() == y.size() && x.size() == 9;   // 6 parameters, 3 running values
    for (std::size_t i = 0; same && i < x.size(); ++i)
        same = at::equal(x[i], y[i]);
    return same;
}

std::string refusal(const std::filesystem::path& file, TorchLearner& learner) {
    try {
        (void)load_checkpoint(file, learner);
    } catch (const CheckpointError& error) {
        return error.what();
    }
    return "taken";
}

}   // namespace

BOOST_AUTO_TEST_CASE(two_epochs_and_two_resumed_give_the_weights_of_four_bit_for_bit) {
    const test::TemporaryFolder folder;
    const LearnerOptions adam{.optimizer = Optimizer::adam, .weight_decay = 0.01};
    const LearnerOptions sgd{.optimizer = Optimizer::sgd, .momentum = 0.9};
    for (const LearnerOptions& options : {adam, sgd}) {
        Run straight{1, options};
        straight.fit(0, 4);

        Run first{1, options};
        first.fit(0, 2);
        BOOST_TEST(first.accumulation.count() > 0);   // accumulated gradients are part of the state
        save_checkpoint(folder / "run.ckpt", first.learner, {2, 8}, first.states);
        Run second{2, {.optimizer = options.optimizer}};
        const TrainingPosition position = load_checkpoint(folder / "run.ckpt", second.learner, second.states);
        BOOST_TEST((position == TrainingPosition{2, 8}));
        BOOST_TEST(equal(first, second));
        BOOST_TEST(!equal(second, straight));
        second.fit(position.epochs, 4);
        BOOST_TEST(equal(second, straight));
        BOOST_TEST(second.learner.learning_rate() == straight.learner.learning_rate());
    }
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_another_model_or_optimizer_is_refused_by_what_differs_and_changes_nothing) {
    const test::TemporaryFolder folder;
    const auto file = folder / "run.ckpt";
    const std::string name = file.string() + ": ";
    TorchLearner saved{mlp(2, 3, {5}, 1)};
    save_checkpoint(file, saved, {1, 1});

    const auto unchanged = [&](const Net& net, const LearnerOptions& options, const std::string& what) {
        TorchLearner learner{model_of(net), options};
        const at::Tensor before = net->parameters().front().detach().clone();
        torch::manual_seed(5);
        const at::Tensor expected = at::rand({1});
        torch::manual_seed(5);
        BOOST_TEST(refusal(file, learner) == name + what);
        BOOST_TEST(at::equal(net->parameters().front(), before));
        BOOST_TEST(at::equal(at::rand({1}), expected));
    };
    const auto like_mlp = [](std::int64_t hidden, bool deeper) {
        Net net{torch::nn::Flatten{}, torch::nn::Linear{2, hidden}, torch::nn::ReLU{}, torch::nn::Linear{hidden, 3}};
        if (deeper)
            net->push_back(torch::nn::Linear{3, 3});
        return net;
    };
    unchanged(like_mlp(6, false), {}, "model.1.weight is [5, 2] of F32 there, [6, 2] of F32 here");
    unchanged(like_mlp(5, true), {}, "has no model.4.weight");
    unchanged(Net{torch::nn::Flatten{}, torch::nn::Linear{2, 5}}, {}, "has model.3.bias, which this model has not");
    unchanged(like_mlp(5, false), {.optimizer = Optimizer::sgd}, "its optimizer is adam, this learner's is sgd");
    Net doubles = like_mlp(5, false);
    doubles->to(at::kDouble);
    unchanged(doubles, {}, "model.1.weight is [5, 2] of F32 there, [5, 2] of F64 here");

    test::put_bytes(file, test::bytes_in(file).substr(0, 200));
    unchanged(like_mlp(5, false), {}, "is no checkpoint, or cut short");
}

BOOST_AUTO_TEST_SUITE_END()
