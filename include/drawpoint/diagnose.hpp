#pragma once

// Why a run waits: blame (what each draw waited for), the verdict and its words, whether the run can be trusted, what
// other settings would give, PyTorch's traces split into draws and compute, and a test of paired measurements. Part of
// drawpoint.hpp; needs no LibTorch. CMake target: drawpoint::diagnosis.

#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/diagnosis/blame/explain.hpp>
#include <drawpoint/diagnosis/comparison/replay_explanation.hpp>
#include <drawpoint/diagnosis/comparison/run_comparison.hpp>
#include <drawpoint/diagnosis/demands/recorded_run.hpp>
#include <drawpoint/diagnosis/logging/run_log.hpp>
#include <drawpoint/diagnosis/paired/symmetry_test.hpp>
#include <drawpoint/diagnosis/replay/prediction.hpp>
#include <drawpoint/diagnosis/replay/replay.hpp>
#include <drawpoint/diagnosis/run_page/run_page.hpp>
#include <drawpoint/diagnosis/traces/trace_split.hpp>
#include <drawpoint/diagnosis/trust/interference.hpp>
#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/diagnosis/verdict/verdict_report.hpp>
#include <drawpoint/diagnosis/verdict/words.hpp>
#include <drawpoint/diagnosis/whatif/whatif.hpp>
#include <drawpoint/diagnosis/whatif/whatif_report.hpp>
