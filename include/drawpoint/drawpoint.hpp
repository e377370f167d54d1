#pragma once

// Everything of drawpoint that needs no LibTorch, for users; nothing inside the project includes this.

#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/instrumentation/event.hpp>
#include <drawpoint/instrumentation/ledger.hpp>
#include <drawpoint/instrumentation/loop_track.hpp>
#include <drawpoint/instrumentation/recorder.hpp>
#include <drawpoint/instrumentation/report/fastxtend.hpp>
#include <drawpoint/instrumentation/report/summary.hpp>
#include <drawpoint/instrumentation/report/text.hpp>
#include <drawpoint/instrumentation/trace.hpp>
#include <drawpoint/loop/callback.hpp>
#include <drawpoint/loop/cancel.hpp>
#include <drawpoint/loop/fit.hpp>
#include <drawpoint/loop/learner.hpp>
#include <drawpoint/pipeline/batch_slots.hpp>
#include <drawpoint/pipeline/batch_source.hpp>
#include <drawpoint/pipeline/blocking.hpp>
#include <drawpoint/pipeline/cache_loader.hpp>
#include <drawpoint/pipeline/data_loader.hpp>
#include <drawpoint/pipeline/errors.hpp>
#include <drawpoint/pipeline/generated_rows.hpp>
#include <drawpoint/pipeline/image_stages.hpp>
#include <drawpoint/pipeline/runtime.hpp>
#include <drawpoint/pipeline/sample_source.hpp>
#include <drawpoint/pipeline/sampler.hpp>
#include <drawpoint/pipeline/stage.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>
#include <drawpoint/pipeline/tensor_rows.hpp>
