// A loader refers to its sampler during its whole lifetime, so a temporary sampler is refused.
// expect: deleted
#include <drawpoint/pipeline/loader/data_loader.hpp>

#ifdef DRAWPOINT_SHOULD_FAIL
using Given = drawpoint::RandomSampler;
#else
using Given = drawpoint::RandomSampler&;
#endif

drawpoint::DataLoader* make(drawpoint::Runtime& runtime, const drawpoint::SampleSource& source,
                            drawpoint::RandomSampler& sampler) {
    return new drawpoint::DataLoader(runtime, source, static_cast<Given>(sampler), drawpoint::LoaderOptions{});
}
