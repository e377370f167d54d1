#pragma once

// The ledger: what a recording says, row by row.

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/ledger/attribution.hpp>
#include <drawpoint/instrumentation/ledger/folded.hpp>
#include <drawpoint/instrumentation/ledger/device_time.hpp>
#include <drawpoint/instrumentation/ledger/ledger.hpp>
#include <drawpoint/instrumentation/ledger/ledger_window.hpp>
#include <drawpoint/instrumentation/ledger/order_rule.hpp>
#include <drawpoint/instrumentation/ledger/rows.hpp>
