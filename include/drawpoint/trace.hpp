#pragma once

// Recordings in files: reading `run.pftrace`, also while it is written, exporting to other tools, importing PyTorch's
// traces.

#include <drawpoint/instrumentation/export/chrome.hpp>
#include <drawpoint/instrumentation/export/csv.hpp>
#include <drawpoint/instrumentation/export/file.hpp>
#include <drawpoint/instrumentation/export/folded.hpp>
#include <drawpoint/instrumentation/export/json.hpp>
#include <drawpoint/instrumentation/export/memory_timeline.hpp>
#include <drawpoint/instrumentation/export/pprof.hpp>
#include <drawpoint/instrumentation/export/speedscope.hpp>
#include <drawpoint/instrumentation/export/xplane.hpp>
#include <drawpoint/instrumentation/import/chrome_trace.hpp>
#include <drawpoint/instrumentation/trace/live_recordings.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>
#include <drawpoint/instrumentation/trace/trace_follower.hpp>
