#pragma once

// Why a run waits: blame, the verdict, whether it can be trusted, and what other settings would give.

#include <drawpoint/diagnosis/blame/blame.hpp>
#include <drawpoint/diagnosis/blame/explain.hpp>
#include <drawpoint/diagnosis/demands/recorded_run.hpp>
#include <drawpoint/diagnosis/replay/prediction.hpp>
#include <drawpoint/diagnosis/replay/replay.hpp>
#include <drawpoint/diagnosis/traces/trace_split.hpp>
#include <drawpoint/diagnosis/trust/capacity.hpp>
#include <drawpoint/diagnosis/trust/interference.hpp>
#include <drawpoint/diagnosis/verdict/verdict.hpp>
#include <drawpoint/diagnosis/verdict/verdict_report.hpp>
#include <drawpoint/diagnosis/verdict/words.hpp>
#include <drawpoint/diagnosis/whatif/whatif.hpp>
#include <drawpoint/diagnosis/whatif/whatif_report.hpp>
