#pragma once

// Finding the setting: tuners that race settings, offline and in a run that goes on training.

#include <drawpoint/diagnosis/tuner/live_target.hpp>
#include <drawpoint/diagnosis/tuner/online_tuner.hpp>
#include <drawpoint/diagnosis/tuner/race.hpp>
#include <drawpoint/diagnosis/tuner/tuner.hpp>
#include <drawpoint/diagnosis/tuner/tuning_report.hpp>
