#pragma once

// Recordings in files: reading `run.pftrace`, exporting to other tools, importing PyTorch's traces.

#include <drawpoint/instrumentation/export/file.hpp>
#include <drawpoint/instrumentation/import/chrome_trace.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>
