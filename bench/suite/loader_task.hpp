#pragma once

#include <memory>

#include <drawpoint/bench/suite/suite.hpp>
#include <drawpoint/pipeline/loader/core/loader_options.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>

namespace drawpoint::bench {

/// See Suite::add_loader().
[[nodiscard]] std::unique_ptr<Task> make_loader_task(const SampleSource&, const Sampler&, const LoaderOptions&,
                                                     const LoaderRow&);

}   // namespace drawpoint::bench
