#pragma once

// Measuring contenders against one another: rounds in an order drawn anew, ratios with bounds that hold whenever one
// looks, a gate that knows how often it is wrong, and suites of benchmarks. Part of drawpoint.hpp; needs no LibTorch.
// CMake target: drawpoint::bench.

#include <drawpoint/bench/experiment/command.hpp>
#include <drawpoint/bench/experiment/contender.hpp>
#include <drawpoint/bench/experiment/counts.hpp>
#include <drawpoint/bench/experiment/experiment.hpp>
#include <drawpoint/bench/experiment/experiment_export.hpp>
#include <drawpoint/bench/experiment/experiment_report.hpp>
#include <drawpoint/bench/experiment/function.hpp>
#include <drawpoint/bench/experiment/gate.hpp>
#include <drawpoint/bench/experiment/results.hpp>
#include <drawpoint/bench/suite/suite.hpp>
#include <drawpoint/bench/suite/task.hpp>
