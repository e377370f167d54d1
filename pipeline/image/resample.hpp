#pragma once
#include <drawpoint/pipeline/image/resize.hpp>
#include "pipeline/image/filter_table.hpp"
#include "pipeline/image/pixel_kernels.hpp"
#include "pipeline/image/pixels/scratch_buffer.hpp"
#include "pipeline/image/pixels/ycc_planes.hpp"

#include <cstdint>

namespace drawpoint {

/// What a ResizeScratch holds. Sized by whole images: after one crop of an image size was resized to a target, no other
/// crop of that size allocates.
struct ResizeBuffers {
    const PixelKernels* kernels = &best_kernels();
    FilterTable vertical, horizontal;
    PackedWeights packed;
    ScratchBuffer<std::uint8_t, 65536> interleaved, row, strip;
    ScratchBuffer<std::int32_t, 65536> sums;
    ScratchBuffer<std::int16_t, 16384> chroma;
};

/// resize_normalize() of part of an image of size `whole`: `buffers` are made large enough for any crop of the whole.
void resize_normalize(const ImageView& part, ImageSize whole, CropBox crop, ImageSize target, bool flip,
                      ResizeFilter filter, const PlanarOutput& out, ResizeBuffers& buffers);

/// The same from the planes of a JPEG file, which must hold all samples that `crop` needs.
void resize_normalize(const YccPlanes& planes, CropBox crop, ImageSize target, bool flip, ResizeFilter filter,
                      const PlanarOutput& out, ResizeBuffers& buffers);

/// Writes the pixels of `crop` from such planes as interleaved RGB in rows without padding.
void write_rgb(const YccPlanes& planes, CropBox crop, ResizeBuffers& buffers, std::uint8_t* rgb);

}   // namespace drawpoint
