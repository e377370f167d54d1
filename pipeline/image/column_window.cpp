#include "pipeline/image/column_window.hpp"

// Only what this was read and tested with: libjpeg-turbo 2 lays the structure out alike in all its releases.
#if defined(LIBJPEG_TURBO_VERSION_NUMBER) && LIBJPEG_TURBO_VERSION_NUMBER >= 2000000 &&                                \
    LIBJPEG_TURBO_VERSION_NUMBER < 3000000 && __has_include(<jpegint.h>)

extern "C" {
#include <jpegint.h>
}

namespace drawpoint {

bool set_block_columns(jpeg_decompress_struct& info, BlockColumns columns) noexcept {
    jpeg_decomp_master* const master = info.master;
    const auto width = static_cast<JDIMENSION>(info.max_h_samp_factor * DCTSIZE);
    const JDIMENSION count = (info.image_width + width - 1) / width;
    if (master == nullptr || jpeg_has_multiple_scans(&info) || count < 2 || columns.last >= count ||
        master->first_iMCU_col != 0 || master->last_iMCU_col != count - 1)
        return false;
    for (int c = 0; c < info.num_components; ++c)
        if (master->first_MCU_col[c] != 0 || master->last_MCU_col[c] != info.comp_info[c].width_in_blocks - 1)
            return false;
    master->first_iMCU_col = columns.first;
    master->last_iMCU_col = columns.last;
    return true;
}

}   // namespace drawpoint

#else

namespace drawpoint {

bool set_block_columns(jpeg_decompress_struct&, BlockColumns) noexcept { return false; }

}   // namespace drawpoint

#endif
