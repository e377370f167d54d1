#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>

#include <boost/test/unit_test.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <latch>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pipeline/stages/jpeg_images.hpp"
#include "support/coro_test.hpp"
#include "support/count_allocations.hpp"

namespace drawpoint {
namespace {

constexpr std::uint32_t sizes = 8;
ImageSize size_of(std::uint32_t i) { return {500 - 20 * i, 375 + 10 * i}; }

/// Files as large as photographs, with different crops and thus different buffers.
test::JpegsInMemory photos(std::size_t count) {
    test::JpegsInMemory photos;
    for (std::uint32_t i = 0; i < sizes; ++i)
        photos.files.push_back(test::jpeg(size_of(i).width, size_of(i).height));
    while (photos.files.size() < count)
        photos.files.push_back(photos.files[photos.files.size() % sizes]);
    return photos;
}

/// A recipe whose workers count their allocations.
class CountedRecipe final : public SampleSource {
public:
    CountedRecipe(ImageRecipe recipe, const JpegBackend backend, const test::UntilSuspended& first_draw)
        : recipe_{std::move(recipe)}, first_draw_{&first_draw} {
        for (std::uint32_t i = 0; i < sizes; ++i)
            uncropped_.push_back(photos(sizes) | DecodeJpeg{backend} |
                                 CenterCrop{size_of(i).height, size_of(i).width, 1.0});
    }
    std::size_t size() const noexcept override { return recipe_.size(); }
    SampleLayout layout() const noexcept override { return recipe_.layout(); }
    std::vector<std::string> stages() const override { return recipe_.stages(); }
    std::string path(std::uint64_t index) const override { return recipe_.path(index); }
    std::unique_ptr<WorkerScratch> make_scratch() const override { return recipe_.make_scratch(); }
    void fill(SampleTask& task, WorkerScratch& scratch) const override {
        first_draw_->wait();
        // The first two samples wait for each other, so that both workers have begun within the warm-up.
        if (const std::size_t worker = begun_.fetch_add(1); worker < 2) {
            both_.arrive_and_wait();
            decode_whole(planar_[worker], scratch);
        }
        test::count_this_thread(true);   // from a worker's first sample on, including what it does between samples
        recipe_.fill(task, scratch);
    }

private:
    /// Decodes one image of each size, uncropped. A decoder reserves room for all of it at its first crop, but touches
    /// the pages only when a crop needs them. A worker that makes only few samples during the warm-up, because the
    /// machine is busy, would otherwise touch a hundred pages and more while faults are counted.
    void decode_whole(std::vector<float>& planar, WorkerScratch& scratch) const {
        for (std::uint32_t i = 0; i < sizes; ++i) {
            planar.resize(uncropped_[i].layout().bytes() / sizeof(float));
            std::int64_t label = 0;
            SampleTask task;
            task.index = i;
            task.target = &label;
            task.data = std::as_writable_bytes(std::span{planar});
            uncropped_[i].fill(task, scratch);
        }
    }

    ImageRecipe recipe_;
    std::vector<ImageRecipe> uncropped_;
    // kept alive, since freeing them would change what malloc() maps
    mutable std::array<std::vector<float>, 2> planar_;
    const test::UntilSuspended* first_draw_;
    mutable std::atomic<std::size_t> begun_ = 0;
    mutable std::latch both_{2};
};

struct Counted {
    std::uint64_t batches = 0, allocations = 0, in_library = 0, faults = 0;
};

Awaitable<void> draw(Runtime& runtime, DataLoader& loader, std::size_t warm_up, test::UntilSuspended& first_draw,
                     Counted& counted) {
    first_draw.watch(runtime);
    auto pass = loader.epoch(0);
    std::uint64_t allocations = 0, in_library = 0, faults = 0;
    for (std::size_t number = 0; number < *pass.size(); ++number) {
        if (number == warm_up) {
            allocations = test::counted_allocations();
            in_library = test::allocations_counted_apart();
            faults = test::minor_faults();
        }
        test::count_this_thread(true);
        auto batch = co_await pass.next();
        test::count_this_thread(false);
        counted.batches += number >= warm_up;
    }
    counted.allocations = test::counted_allocations() - allocations;
    counted.in_library = test::allocations_counted_apart() - in_library;
    counted.faults = test::minor_faults() - faults;
}

BOOST_AUTO_TEST_SUITE(steady_state_jpeg)

BOOST_AUTO_TEST_CASE(loading_jpeg_files_allocates_nothing_but_the_decoders_own_pools) {
    jpeg_error_mgr errors;
    jpeg_std_error(&errors);   // its functions are in the library, however this program calls them
    BOOST_TEST_REQUIRE(test::count_library_apart(reinterpret_cast<const void*>(errors.error_exit)));
    constexpr std::size_t batch_size = 16, depth = 2, batches = 60, warm_up = 6;
    for (const JpegBackend backend : {JpegBackend::library, JpegBackend::own})
        for (const bool record : {false, true}) {
            BOOST_TEST_CONTEXT((backend == JpegBackend::own ? "own" : "library") << ", record " << record) {
                const auto recorder = test::small_recorder();
                Runtime runtime{{.record = record}, *recorder};
                test::UntilSuspended first_draw;
                const CountedRecipe source{photos(batch_size * batches) | DecodeJpeg{backend} |
                                               RandomResizedCrop{224, 224} | RandomHorizontalFlip{} |
                                               Normalize::imagenet(),
                                           backend, first_draw};
                const RandomSampler sampler{source.size(), 7};
                DataLoader loader{
                    runtime, source, sampler, {.batch_size = batch_size, .num_workers = 2, .prefetch_depth = depth}};
                Counted counted;
                run(runtime, draw(runtime, loader, warm_up, first_draw, counted));
                BOOST_TEST(counted.batches == batches - warm_up);
                BOOST_TEST(counted.allocations == 0u);
                BOOST_TEST_MESSAGE(counted.in_library << " allocations inside libjpeg, " << counted.faults
                                                      << " minor faults in " << counted.batches << " batches");
                if (!test::counts_allocations())
                    continue;
                // The library's allocations show that allocations are counted at all.
                BOOST_TEST((counted.in_library > 0) == (backend == JpegBackend::library));
                // The recorder's writer thread has a growing ledger, whose pages are not the loader's.
                if (!record)
                    BOOST_TEST(counted.faults < counted.batches);
            }
        }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
