#pragma once

// The loader: batches from any sample source, drawn by `co_await` or by blocking.

#include <drawpoint/pipeline/cache/cache_loader.hpp>
#include <drawpoint/pipeline/cache/sample_cache.hpp>
#include <drawpoint/pipeline/errors.hpp>
#include <drawpoint/pipeline/loader/batch_slots.hpp>
#include <drawpoint/pipeline/loader/batch_source.hpp>
#include <drawpoint/pipeline/loader/blocking.hpp>
#include <drawpoint/pipeline/loader/collate.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/loader/loader_setting.hpp>
#include <drawpoint/pipeline/loader/read_backend.hpp>
#include <drawpoint/pipeline/loader/runtime.hpp>
