#pragma once

#include <drawpoint/pipeline/image/jpeg.hpp>
#include <drawpoint/pipeline/image/resize.hpp>

#include "workload.hpp"

namespace drawpoint::bench {

[[nodiscard]] inline JpegBackend jpeg_backend(const Workload& workload) {
    if (workload.jpeg_decoder == "library")
        return JpegBackend::library;
    return workload.jpeg_decoder == "own" ? JpegBackend::own : JpegBackend::automatic;
}

[[nodiscard]] inline ResizeFilter resize_filter(const Workload& workload) {
    return workload.resize_filter == "bilinear" ? ResizeFilter::bilinear : ResizeFilter::antialias;
}

}   // namespace drawpoint::bench
