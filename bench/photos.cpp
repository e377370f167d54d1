#include "photos.hpp"

#include <cstdlib>
#include <string>

namespace drawpoint::bench {

TemporaryPhotos::TemporaryPhotos(std::uint32_t count, ImageSize size) {
    constexpr std::uint32_t pictures = 8;
    make_generated_photos(folder_.path() / "pictures", pictures, 7);
    cut_photo_crops({.from = folder_.path() / "pictures",
                     .out = folder_.path() / "crops",
                     .per_image = count / pictures,
                     .size = size,
                     .held_out = 0});
}

SuitePhotos::SuitePhotos(Suite& suite, int& argc, char** argv) {
    constexpr const char* variable = "DRAWPOINT_BENCH_DATA";
    folder_ = suite.take_option(argc, argv, "--data", "folder of class folders of JPEG files [generated pictures]");
    if (const char* given = std::getenv(variable); given && folder_.empty())
        folder_ = given;
    if (!folder_.empty())
        return;
    folder_ = generated_.emplace(640).folder();
    setenv(variable, folder_.c_str(), 1);
}

}   // namespace drawpoint::bench
