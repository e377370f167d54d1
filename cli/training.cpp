#include "cli/training.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <stdexcept>
#include <system_error>

#include <asio/error.hpp>
#include <fmt/format.h>

#include "cli/compute.hpp"
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/loop/callbacks/checkpoint.hpp>
#include <drawpoint/loop/fit.hpp>
#include <drawpoint/loop/torch/learner.hpp>
#include <drawpoint/pipeline/cache/sample_cache.hpp>
#include <drawpoint/pipeline/loader/core/detail/batch_digest.hpp>
#include <drawpoint/pipeline/torch/pinned_memory.hpp>

namespace drawpoint::cli {
namespace {

/// A digest of the samples trained on, in their order, over all runs that went on with one another. Pixels are left
/// out: reading them would make every step milliseconds longer.
class TrainedSamples final : public Stateful {
public:
    template <class AnyBatch>
    void add(const AnyBatch& batch) noexcept {
        digest_.add(std::as_bytes(batch.indices()));
        digest_.add(std::as_bytes(batch.targets()));
    }
    [[nodiscard]] std::string digest() const { return digest_.hex(); }
    [[nodiscard]] std::string_view state_name() const noexcept override { return "trained_samples"; }
    void save(Checkpoint& to, const std::string& prefix) const override {
        to.set_integer(prefix + "digest", static_cast<std::int64_t>(digest_.value()));
    }
    void load(const Checkpoint& from, const std::string& prefix) override {
        digest_ = BatchDigest{static_cast<std::uint64_t>(from.integer(prefix + "digest"))};
    }

private:
    BatchDigest digest_;
};

/// A learner that also notes the samples it is trained on.
template <class L>
class Noting {
public:
    Noting(L& learner, TrainedSamples& trained) noexcept : learner_{&learner}, trained_{&trained} {}
    void begin_phase(bool training) {
        training_ = training;
        learner_->begin_phase(training);
    }
    template <class AnyBatch>
    void forward(AnyBatch& batch) {
        if (training_)
            trained_->add(batch);
        learner_->forward(batch);
    }
    template <class AnyBatch>
    void loss(AnyBatch& batch) {
        learner_->loss(batch);
    }
    template <class AnyBatch>
        requires LateLossLearner<L, AnyBatch>
    bool keep_loss(AnyBatch& batch) {
        return learner_->keep_loss(batch);
    }
    void backward() { learner_->backward(); }
    void opt_step() { learner_->opt_step(); }
    void zero_grad() { learner_->zero_grad(); }
    void end_batch() noexcept {
        if constexpr (ForgettingLearner<L>)
            learner_->end_batch();
    }
    [[nodiscard]] double loss_value() const { return learner_->loss_value(); }

private:
    L* learner_;
    TrainedSamples* trained_;
    bool training_ = true;
};

/// An error's text without the C++ stack that LibTorch appends, and with advice where the text alone does not help.
std::string in_our_words(std::string error) {
    for (const std::string_view stack : {"\nException raised from", "\nframe #0"})
        error.resize(std::min(error.size(), error.find(stack)));
    if (error.find("Expected more than 1 value per channel") != error.npos)
        error += " (a batch of one sample: try --drop-last or another --batch-size)";
    return error;
}

template <class L>
Outcome train(L& learner, TrainedSamples& trained, Runtime& runtime, Loaders& loaders, const FitOptions& fit_options,
              std::size_t steps_before, CallbackList& callbacks, const StopRequest& stop) {
    Outcome outcome;
    Noting<L> noting{learner, trained};
    const auto fit_on = [&](auto& of_training, auto& of_validation) {
        if (of_validation)
            run(runtime, fit(noting, of_training, *of_validation, fit_options, callbacks, runtime.recorder()));
        else
            run(runtime, fit(noting, of_training, fit_options, callbacks, runtime.recorder()));
    };
    try {
        if constexpr (Learner<L, DeviceBatch>)
            if (loaders.train_on_device)
                fit_on(*loaders.train_on_device, loaders.valid_on_device);
        if (!loaders.train_on_device)
            fit_on(loaders.train, loaders.valid);
        if constexpr (requires { learner.metrics(); })
            if (const auto metrics = learner.metrics(); metrics.seen > 0)
                outcome.accuracy = metrics.accuracy();
    } catch (const std::system_error& error) {
        if (error.code() != asio::error::operation_aborted)
            outcome.error = error.what();
        else if (!stop.asked())   // the only reason why a loader stops by itself
            outcome.error = "the loader stopped: there is no memory for its workers";
    } catch (const std::exception& error) {
        outcome.error = error.what();
    }
    outcome.error = in_our_words(std::move(outcome.error));
    outcome.digest = trained.digest();
    if (stop.asked())
        outcome.stopped = stop.reason();
    else if (!outcome.error.empty())
        outcome.stopped = "error: " + outcome.error;
    else if (fit_options.max_steps > 0 &&
             fit_options.max_steps + steps_before < fit_options.epochs * loaders.train.batches_per_epoch())
        outcome.stopped = fmt::format("--steps {}", fit_options.max_steps);
    return outcome;
}

/// A loader's share of --memory-budget. With validation it is half of what the caches leave, and the loader's own
/// cache. Throws UsageError if they leave nothing.
std::uint64_t budget_of(const ProfileOptions& options, const Data& data, bool of_training) {
    const std::uint64_t budget = options.loader.memory_budget;
    if (budget == 0 || !data.valid)
        return budget;
    const auto bytes_of = [](const SampleCache* cache) {
        return cache != nullptr && !cache->in_file() ? cache->counters().budget_bytes : 0;
    };
    const std::uint64_t of_train = bytes_of(data.train->cache()), of_valid = bytes_of(data.valid->cache());
    const std::uint64_t caches = of_train + (data.valid->cache() == data.train->cache() ? 0 : of_valid);
    if (budget <= caches)
        throw UsageError{fmt::format("--memory-budget {} leaves nothing beside --cache {}", options.memory_budget,
                                     options.cache.text)};
    const std::uint64_t half = std::max<std::uint64_t>((budget - caches) / 2, 1);   // 0 would mean no budget
    return half + (of_training ? of_train : of_valid);
}

LoaderOptions loader_options(const ProfileOptions& options, const Data& data, bool of_training) {
    LoaderOptions all = options_of(options.loader);
    all.seed = options.seed;
    all.drop_last = options.drop_last && of_training;
    all.on_error = options.on_error.value;
    all.max_errors = options.max_errors;
    all.stall_timeout = std::chrono::seconds{options.stall_timeout};
    all.memory_budget = budget_of(options, data, of_training);
    all.slot_memory = options.on_device() ? pinned_memory() : nullptr;
    return all;
}

/// What a resumed run must have in common with the run that wrote the checkpoint, to go on as that one would have.
RunOptions resumable_options(const ProfileOptions& options, const Loaders& loaders) {
    return {{"--model", options.model.text},
            {"--optimizer", options.optimizer.text},
            {"--batch-size", std::to_string(options.loader.batch_size)},
            {"--drop-last", options.drop_last ? "true" : "false"},
            {"--seed", std::to_string(options.seed)},
            {"--valid", options.valid.text},
            {"batches an epoch", std::to_string(loaders.train.batches_per_epoch())},
            {"--image-size", std::to_string(options.image_size)},
            {"--resize-filter", options.resize_filter.text}};
}

/// Loads what `--resume` names. Throws Failure when nothing is left to train.
TrainingPosition resume(const ProfileOptions& options, TorchLearner& learner, std::span<Stateful* const> states,
                        const Loaders& loaders) {
    const TrainingPosition position =
        load_checkpoint(options.resume, learner, states, resumable_options(options, loaders));
    if (options.learning_rate)
        learner.set_learning_rate(*options.learning_rate);
    if (position.epochs >= options.epochs)
        throw Failure{fmt::format("--resume {}: epochs finished: {}, so --epochs {} leaves nothing to train",
                                  options.resume, position.epochs, options.epochs)};
    return position;
}

Model make_model(const ProfileOptions& options, std::size_t inputs, std::size_t classes) {
    switch (options.model.value) {
    case ModelKind::mlp: return mlp(inputs, classes, {256}, options.seed);
    case ModelKind::resnet18: return resnet18(classes, options.seed);
    case ModelKind::resnet50: return resnet50(classes, options.seed);
    default: return small_cnn(classes, options.seed);
    }
}

}   // namespace

void check_device(const ProfileOptions& options) {
    if (!options.on_device())
        return;
    try {
        (void)find_device(options.device);
    } catch (const std::exception& error) {
        throw UsageError{fmt::format("--{}", error.what())};
    }
}

Loaders::Loaders(Runtime& runtime, const ProfileOptions& options, const Data& data)
    : train{runtime, *data.train, *data.train_sampler, loader_options(options, data, true), "train"},
      inputs{data.train->layout().values()} {
    if (data.valid)
        valid.emplace(runtime, *data.valid, *data.valid_sampler, loader_options(options, data, false), "valid");
    if (!options.on_device())
        return;
    const std::uint64_t budget = options.device_memory_budget.value;
    DeviceOptions on_device{.device = options.device,
                            .memory_budget = budget == 0 || !valid ? budget : std::max<std::uint64_t>(budget / 2, 1)};
    if (options.device_prefetch)
        on_device.device_prefetch = *options.device_prefetch;
    if (data.normalizes_on_device)
        on_device.normalize = Normalize::imagenet();
    try {
        train_on_device.emplace(train, on_device);
        if (valid)
            valid_on_device.emplace(*valid, on_device);
    } catch (const std::invalid_argument& error) {
        throw UsageError{fmt::format("--device-memory-budget {}: {}", options.device_memory_budget.text, error.what())};
    }
}

std::vector<DataLoader*> Loaders::all() {
    std::vector<DataLoader*> loaders{&train};
    if (valid)
        loaders.push_back(&*valid);
    return loaders;
}

Outcome train_model(const ProfileOptions& options, std::size_t classes, Runtime& runtime, Loaders& loaders,
                    CallbackList callbacks, const StopRequest& stop) {
    const bool has_model = options.model.value != ModelKind::none;
    FitOptions fit_options{.epochs = options.epochs, .max_steps = options.steps, .record_loss = has_model};
    const std::chrono::nanoseconds own{static_cast<std::int64_t>(options.compute_ms * 1e6)};
    TrainedSamples trained;
    const Delay delay = delay_of(options.inject, own, options.seed);
    if (!has_model) {
        WaitingLearner learner{delay};
        return train(learner, trained, runtime, loaders, fit_options, 0, callbacks, stop);
    }
    SlowForward slow{delay};
    Model model = make_model(options, loaders.inputs, classes);
    if (loaders.train_on_device)
        model.to(loaders.train_on_device->device());
    const bool adam = options.optimizer.value == OptimizerKind::adam;
    TorchLearner learner{model,
                         {.optimizer = adam ? Optimizer::adam : Optimizer::sgd,
                          .learning_rate = options.learning_rate.value_or(adam ? 1e-3 : 1e-2),
                          .bf16 = options.precision.value == Precision::bf16_mixed}};
    LoaderPosition drawn{loaders.train};
    const std::vector<Stateful*> states{&trained, &drawn};
    const TrainingPosition position =
        options.resume.empty() ? TrainingPosition{} : resume(options, learner, states, loaders);
    fit_options.first_epoch = position.epochs;
    fit_options.resumed = position.steps > 0;
    std::optional<CheckpointCallback<TorchLearner>> checkpoint;
    if (delay.base().count() > 0)
        callbacks.add(slow);
    if (!options.checkpoint.empty())
        callbacks.add(checkpoint.emplace(learner,
                                         CheckpointOptions{.file = options.checkpoint,
                                                           .every_steps = options.checkpoint_every,
                                                           .run = resumable_options(options, loaders),
                                                           .first_step = position.steps},
                                         states));
    return train(learner, trained, runtime, loaders, fit_options, position.steps, callbacks, stop);
}

}   // namespace drawpoint::cli
