#include "pipeline/image/jpeg_encoder.hpp"

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <drawpoint/instrumentation/detail/replaced_file.hpp>
#include "pipeline/image/libjpeg.hpp"

namespace drawpoint {
namespace {

// What compress() needs and leaves; trivially destructible, as everything alive across a longjmp must be.
struct Compression {
    jpeg_compress_struct info;
    jpeg_error_mgr errors;
    JpegFailure failure;
    unsigned char* memory;
    unsigned long bytes;
    bool begun;   // there is memory, or there was
};

bool compress(Compression& compression, const ImageView& image, int quality) noexcept {
    auto& info = compression.info;
    report_to(compression.failure, compression.errors, reinterpret_cast<jpeg_common_struct&>(info));
    if (setjmp(compression.failure.escape) != 0) {
        if (compression.begun)   // the library tells only at the end where its memory has moved to
            info.dest->term_destination(&info);
        return false;
    }
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &compression.memory, &compression.bytes);
    compression.begun = true;
    info.image_width = image.size.width;
    info.image_height = image.size.height;
    info.input_components = 3;
    info.in_color_space = JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    jpeg_start_compress(&info, TRUE);
    while (info.next_scanline < image.size.height) {
        auto* row =
            const_cast<JSAMPROW>(image.pixels + info.next_scanline * image.stride);   // the library only reads it
        jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
    return true;
}

/// 0, or the system's error.
int write_all(int file, const std::vector<std::byte>& contents) noexcept {
    for (std::size_t done = 0; done < contents.size();) {
        const ssize_t put = ::write(file, contents.data() + done, contents.size() - done);
        if (put > 0)
            done += static_cast<std::size_t>(put);
        else if (put == 0 || errno != EINTR)
            return put == 0 ? EIO : errno;   // 0: rather than for ever
    }
    const int again = ::fcntl(file, F_DUPFD_CLOEXEC, 0);   // some file systems say only at a close what went wrong
    return again < 0 || ::close(again) != 0 ? errno : 0;
}

}   // namespace

std::vector<std::byte> encode_jpeg(const ImageView& image, int quality) {
    Compression compression{};
    const bool done = compress(compression, image, quality);
    jpeg_destroy_compress(&compression.info);
    const std::unique_ptr<unsigned char, decltype(&std::free)> memory{compression.memory, &std::free};
    if (!done)
        throw ImageError(std::string("cannot encode: ") + compression.failure.message);
    const auto* begin = reinterpret_cast<const std::byte*>(memory.get());
    return {begin, begin + compression.bytes};
}

void write_whole_file(const std::filesystem::path& path, const std::vector<std::byte>& contents) {
    int error = 0;
    try {
        ReplacedFile file{path};   // of this call alone: others may write files of the same name
        error = write_all(file.number(), contents);
        if (error == 0)
            error = file.commit();
    } catch (const std::system_error& failure) {
        error = failure.code().value();
    }
    if (error != 0)
        throw std::filesystem::filesystem_error("cannot write", path, std::error_code(error, std::generic_category()));
}

}   // namespace drawpoint
