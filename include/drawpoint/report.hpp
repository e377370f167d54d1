#pragma once

// Reports: the summary and its text, and the tables of fastxtend, Lightning and torch.profiler.

#include <drawpoint/instrumentation/report/advanced.hpp>
#include <drawpoint/instrumentation/report/fastxtend.hpp>
#include <drawpoint/instrumentation/report/fastxtend_log.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/report/lightning.hpp>
#include <drawpoint/instrumentation/report/machine.hpp>
#include <drawpoint/instrumentation/report/operators.hpp>
#include <drawpoint/instrumentation/report/scale_time.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/instrumentation/report/text.hpp>
#include <drawpoint/instrumentation/statistics.hpp>
#include <drawpoint/instrumentation/text/format.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>
#include <drawpoint/instrumentation/text/terminal.hpp>
