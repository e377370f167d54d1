#pragma once

// Measuring contenders against one another: rounds in an order drawn anew, ratios with bounds that hold whenever one
// looks, and a gate that knows how often it is wrong. Part of drawpoint.hpp; needs no LibTorch. CMake target:
// drawpoint::bench.

#include <drawpoint/bench/experiment/command.hpp>
#include <drawpoint/bench/experiment/contender.hpp>
#include <drawpoint/bench/experiment/experiment.hpp>
#include <drawpoint/bench/experiment/experiment_export.hpp>
#include <drawpoint/bench/experiment/experiment_report.hpp>
#include <drawpoint/bench/experiment/function.hpp>
#include <drawpoint/bench/experiment/gate.hpp>
