#include <boost/test/unit_test.hpp>

#include <vector>

#include <drawpoint/pipeline/sampling/sampler.hpp>
#include "pipeline/storage/tar_help.hpp"
#include "support/count_allocations.hpp"

namespace drawpoint {
namespace {

BOOST_AUTO_TEST_SUITE(tar_allocation)

BOOST_AUTO_TEST_CASE(reading_shards_stops_allocating_after_the_first_epochs) {
    const test::TemporaryFolder folder;
    test::write_classes_of_noise(folder, "in", 4, 60, 3000);
    const ImageFolder images{folder.path() / "in"};
    for (const auto compression : {TarCompression::none, TarCompression::gzip, TarCompression::zstd}) {
        const auto out = folder.path() / std::to_string(static_cast<int>(compression));
        (void)pack_image_folder(images, test::in_order(images.size()), {out, 200'000, compression});
        for (const bool sequential : {false, true}) {
            const TarShards shards{out.string(), {.sequential = sequential, .held = 32}};
            const ShardSampler sampler{shards.shard_sizes(), 1, 24};
            std::vector<std::uint64_t> order(sampler.size());
            test::Bytes contents;
            std::size_t bytes = 0;
            const auto read = [&](std::size_t begin, std::size_t end) {
                const std::uint64_t before = test::counted_allocations();
                test::count_this_thread(true);
                for (std::size_t epoch = begin; epoch < end; ++epoch) {
                    sampler.order(epoch, order);
                    for (const std::uint64_t index : order) {
                        shards.read(index, contents);
                        bytes += contents.size() + shards.bytes(index) + static_cast<std::size_t>(shards.label(index));
                        bytes += shards.location(index).bytes;
                    }
                }
                test::count_this_thread(false);
                return test::counted_allocations() - before;
            };
            const std::uint64_t first = read(0, 40), then = read(40, 60);
            BOOST_TEST(first < 4u * (24u + 24u));   // four streams' images, and what each consists of
            BOOST_TEST(bytes > 0u);
            BOOST_TEST(then == 0u, then << " after " << first << ", compression " << static_cast<int>(compression)
                                        << ", sequential " << sequential);
            if (test::counts_allocations())
                BOOST_TEST(first > 0u);   // otherwise nothing would have been counted at all
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
