#pragma once

// Everything of drawpoint that needs no LibTorch: all doors but <drawpoint/torch.hpp>. For users; nothing inside the
// project includes a door.

#include <drawpoint/bench.hpp>
#include <drawpoint/data.hpp>
#include <drawpoint/diagnose.hpp>
#include <drawpoint/ledger.hpp>
#include <drawpoint/loader.hpp>
#include <drawpoint/loop.hpp>
#include <drawpoint/recorder.hpp>
#include <drawpoint/report.hpp>
#include <drawpoint/trace.hpp>
#include <drawpoint/tune.hpp>
