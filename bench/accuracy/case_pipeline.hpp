#pragma once

#include <memory>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/loop/callback.hpp>
#include <drawpoint/loop/fit.hpp>
#include <drawpoint/pipeline/loader/core/collate.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>

#include "case_learner.hpp"
#include "case_source.hpp"
#include "rig.hpp"

namespace drawpoint::bench {

/// A case's real loader and training loop, with all their threads and the case's disturbance.
class CasePipeline {
public:
    /// `sampler` draws from `samples` samples; it, the case and the recorder must outlive this. Throws what their
    /// constructors throw.
    CasePipeline(const Case&, Rig&, const Sampler&, std::size_t samples, Recorder&);

    [[nodiscard]] DataLoader& loader() noexcept { return loader_; }
    [[nodiscard]] CaseLearner& learner() noexcept { return learner_; }
    /// Runs the loop, without a model, until `options` or a callback end it.
    void fit(const FitOptions&, CallbackList&);

private:
    const Case* case_;
    Recorder* recorder_;
    CaseSource source_;
    std::shared_ptr<const Collate> collate_;
    CaseLearner learner_;
    Runtime runtime_;
    DataLoader loader_;
};

}   // namespace drawpoint::bench
