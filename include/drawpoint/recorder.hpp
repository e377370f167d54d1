#pragma once

// Recording a run: the recorder, its clock, marks of one's own loop, a schedule, samples of stacks.

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/instrumentation/event.hpp>
#include <drawpoint/instrumentation/host/host.hpp>
#include <drawpoint/instrumentation/ledger/records.hpp>
#include <drawpoint/instrumentation/recorder/loop_track.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/recorder/region.hpp>
#include <drawpoint/instrumentation/sampling/stack_sampler.hpp>
#include <drawpoint/instrumentation/sampling/symbols.hpp>
#include <drawpoint/instrumentation/schedule.hpp>
