// The operating system caches files anyway, so caching what is read would only hold it twice.
// expect: put cached\(bytes\) behind decode_image
#include <drawpoint/pipeline/stages/image_stages.hpp>

using namespace drawpoint;

struct Photos {
    std::size_t size() const noexcept { return 1; }
    int label(std::size_t) const noexcept { return 0; }
    const char* path(std::size_t) const noexcept { return "a.jpg"; }
};

#ifdef DRAWPOINT_SHOULD_FAIL
auto recipe = Photos{} | cached(1_GiB) | decode_image;
#else
auto recipe = Photos{} | decode_image | cached(1_GiB);
#endif
