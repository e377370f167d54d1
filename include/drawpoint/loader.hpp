#pragma once

// The loader: batches from any sample source, drawn by `co_await` or by blocking.

#include <drawpoint/pipeline/cache/sample_cache.hpp>
#include <drawpoint/pipeline/errors.hpp>
#include <drawpoint/pipeline/loader/blocking.hpp>
#include <drawpoint/pipeline/loader/cache_loader.hpp>
#include <drawpoint/pipeline/loader/core/batch_slots.hpp>
#include <drawpoint/pipeline/loader/core/batch_source.hpp>
#include <drawpoint/pipeline/loader/core/collate.hpp>
#include <drawpoint/pipeline/loader/core/loader_options.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/loader/machine/loader_setting.hpp>
#include <drawpoint/pipeline/loader/machine/memory_plan.hpp>
#include <drawpoint/pipeline/loader/reading/read_backend.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>
