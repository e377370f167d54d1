#pragma once

// The training loop: fit, callbacks, cancels, loggers and profilers.

#include <drawpoint/loop/callback.hpp>
#include <drawpoint/loop/callbacks/checkpoint.hpp>
#include <drawpoint/loop/callbacks/checkpoint_file.hpp>
#include <drawpoint/loop/callbacks/early_stopping.hpp>
#include <drawpoint/loop/callbacks/gradient_accumulation.hpp>
#include <drawpoint/loop/callbacks/gradient_clipping.hpp>
#include <drawpoint/loop/callbacks/learner_hooks.hpp>
#include <drawpoint/loop/callbacks/learning_rate_schedule.hpp>
#include <drawpoint/loop/callbacks/metrics.hpp>
#include <drawpoint/loop/callbacks/metrics_recorder.hpp>
#include <drawpoint/loop/callbacks/monitor.hpp>
#include <drawpoint/loop/callbacks/progress_bar.hpp>
#include <drawpoint/loop/callbacks/reduce_on_plateau.hpp>
#include <drawpoint/loop/callbacks/schedules.hpp>
#include <drawpoint/loop/callbacks/terminate_on_nan.hpp>
#include <drawpoint/loop/cancel.hpp>
#include <drawpoint/loop/event_callback.hpp>
#include <drawpoint/loop/fit.hpp>
#include <drawpoint/loop/learner.hpp>
#include <drawpoint/loop/loggers/file_loggers.hpp>
#include <drawpoint/loop/loggers/logger.hpp>
#include <drawpoint/loop/loggers/tracker_loggers.hpp>
#include <drawpoint/loop/profilers/advanced.hpp>
#include <drawpoint/loop/profilers/fastxtend.hpp>
#include <drawpoint/loop/profilers/profile_iterable.hpp>
#include <drawpoint/loop/profilers/profiler.hpp>
#include <drawpoint/loop/profilers/profiler_callback.hpp>
#include <drawpoint/loop/profilers/simple.hpp>
#include <drawpoint/loop/profilers/xla.hpp>
#include <drawpoint/loop/show_training_loop.hpp>
