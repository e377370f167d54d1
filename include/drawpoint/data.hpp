#pragma once

// What samples are made of: data sets in files and memory, stages composed with `|`, samplers.

#include <drawpoint/pipeline/byte_literals.hpp>
#include <drawpoint/pipeline/image/crop.hpp>
#include <drawpoint/pipeline/image/dataset_info.hpp>
#include <drawpoint/pipeline/image/image_decoder.hpp>
#include <drawpoint/pipeline/image/jpeg.hpp>
#include <drawpoint/pipeline/image/photo_crops.hpp>
#include <drawpoint/pipeline/image/resize.hpp>
#include <drawpoint/pipeline/loader/core/sample_buffer.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>
#include <drawpoint/pipeline/rng.hpp>
#include <drawpoint/pipeline/sampling/bucket_sampler.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/stages/array_rows.hpp>
#include <drawpoint/pipeline/stages/cached.hpp>
#include <drawpoint/pipeline/stages/generated_rows.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/stages/inject.hpp>
#include <drawpoint/pipeline/stages/stage.hpp>
#include <drawpoint/pipeline/stages/tensor_rows.hpp>
#include <drawpoint/pipeline/storage/array_file.hpp>
#include <drawpoint/pipeline/storage/cifar_file.hpp>
#include <drawpoint/pipeline/storage/idx_file.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>
#include <drawpoint/pipeline/storage/tar_pack.hpp>
#include <drawpoint/pipeline/storage/tar_shards.hpp>
