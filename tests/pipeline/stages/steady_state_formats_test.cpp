#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <initializer_list>
#include <latch>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <drawpoint/pipeline/loader/core/sample_buffer.hpp>
#include <drawpoint/pipeline/stages/array_rows.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/stages/inject.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>
#include <drawpoint/pipeline/storage/tar_pack.hpp>
#include <drawpoint/pipeline/storage/tar_shards.hpp>
#include <drawpoint/pipeline/stages/tensor_rows.hpp>

#include "support/temporary_folder.hpp"
#include "pipeline/stages/jpeg_images.hpp"
#include "support/coro_test.hpp"
#include "support/count_allocations.hpp"

namespace drawpoint {
namespace {

constexpr std::size_t samples = 96, batch_size = 8, warm_up = 6, counted_epochs = 8, seed = 5;
constexpr std::size_t most_file_bytes = 64 * 1024;

/// Counts the allocations of threads that make or read samples of another source, from their first sample on.
class CountedSource final : public SampleSource, private SampleReads {
public:
    CountedSource(std::shared_ptr<const SampleSource> source, const test::UntilSuspended& first_draw)
        : source_{std::move(source)}, first_draw_{&first_draw} {}
    std::size_t size() const noexcept override { return source_->size(); }
    SampleLayout layout() const noexcept override { return source_->layout(); }
    std::vector<std::string> stages() const override { return source_->stages(); }
    std::string path(std::uint64_t index) const override { return source_->path(index); }
    /// A worker may sleep through the warm-up and meet a larger image, or one that its cache does not hold, after it.
    /// So each worker makes all samples of the warm-up here.
    std::unique_ptr<WorkerScratch> make_scratch() const override {
        auto scratch = source_->make_scratch();
        SampleBuffer sample;
        std::int64_t target = 0;
        for (std::uint64_t number = 0; !fills_runs() && number < warm_up * samples; ++number) {
            SampleTask task;
            task.index = number % samples;
            task.seed = seed;
            task.epoch = number / samples;
            task.data = sample.reshape(layout());
            task.target = &target;
            source_->fill(task, *scratch);
        }
        return scratch;
    }
    void fill(SampleTask& task, WorkerScratch& scratch) const override {
        begin();
        source_->fill(task, scratch);
    }
    bool fills_runs() const noexcept override { return source_->fills_runs(); }
    void fill_run(SampleRun& run, WorkerScratch& scratch) const override {
        begin();
        source_->fill_run(run, scratch);
    }
    const SampleReads* reads() const noexcept override { return source_->reads() != nullptr ? this : nullptr; }
    std::string random_part() const override { return source_->random_part(); }
    const SampleCache* cache() const noexcept override { return source_->cache(); }

private:
    void begin() const {
        first_draw_->wait();
        // The first two samples wait for each other, so that both workers have begun within the warm-up.
        if (begun_.fetch_add(1) < 2)
            both_.arrive_and_wait();
        test::count_this_thread(true);
    }
    void read(std::uint64_t index, std::vector<std::byte>& contents) const override {
        // It grows with the largest file that was ever read into it: on a busy machine perhaps after the warm-up.
        test::count_this_thread(false);
        contents.reserve(most_file_bytes);
        test::count_this_thread(true);
        source_->reads()->read(index, contents);
    }
    std::optional<FileRange> location(std::uint64_t index) const noexcept override {
        return source_->reads()->location(index);
    }
    bool wants(std::uint64_t index) const noexcept override { return source_->reads()->wants(index); }

    std::shared_ptr<const SampleSource> source_;
    const test::UntilSuspended* first_draw_;
    mutable std::atomic<int> begun_ = 0;
    mutable std::latch both_{2};
};

struct Counted {
    std::array<std::uint64_t, counted_epochs> allocations{};   // per epoch
    std::uint64_t batches = 0, in_libraries = 0, faults = 0, reads_ahead = 0;
    [[nodiscard]] std::size_t quiet_epochs() const {
        return static_cast<std::size_t>(std::ranges::count(allocations, 0u));
    }
};

Awaitable<void> draw(Runtime& runtime, DataLoader& loader, test::UntilSuspended& first_draw, Counted& counted) {
    first_draw.watch(runtime);
    std::uint64_t in_libraries = 0, faults = 0;
    for (std::size_t epoch = 0; epoch < warm_up + counted_epochs; ++epoch) {
        if (epoch == warm_up) {
            in_libraries = test::allocations_counted_apart();
            faults = test::minor_faults();
        }
        const std::uint64_t before = test::counted_allocations();
        test::count_this_thread(true);
        auto pass = loader.epoch(epoch, {.next_epoch = epoch + 1 < warm_up + counted_epochs});
        for (std::size_t number = 0; number < *pass.size(); ++number) {
            auto batch = co_await pass.next();
            counted.batches += epoch >= warm_up;
        }
        test::count_this_thread(false);
        if (epoch >= warm_up)
            counted.allocations[epoch - warm_up] = test::counted_allocations() - before;
    }
    counted.in_libraries = test::allocations_counted_apart() - in_libraries;
    counted.faults = test::minor_faults() - faults;
}

using Source = std::shared_ptr<const SampleSource>;

struct Way {
    OrderRule order{};
    bool record = false, reads_ahead = true;
};

Counted load(const Source& source, const Sampler& sampler, const Way& way) {
    const auto recorder = test::small_recorder();
    // A new thread must not count yet: it may have counted for another loader.
    Runtime runtime{{.record = way.record, .on_worker_start = []() noexcept { test::count_this_thread(false); }},
                    *recorder};
    test::UntilSuspended first_draw;
    const CountedSource counted_source{source, first_draw};
    LoaderOptions options{.batch_size = batch_size, .num_workers = 2, .seed = seed, .order = way.order};
    if (!way.reads_ahead)
        options.read_concurrency = 0;
    DataLoader loader{runtime, counted_source, sampler, options};
    Counted counted;
    run(runtime, draw(runtime, loader, first_draw, counted));
    BOOST_TEST(loader.counters().handler_fallbacks == 0u);
    counted.reads_ahead = loader.counters().reads_ahead;
    return counted;
}

/// What may still be allocated when the loader is warm.
enum class Growth : std::uint8_t {
    none,
    of_buffers,   // only if more reads are in flight than ever before; without reading ahead nothing
    of_streams,   // the same, or if more images of a shard are skipped than ever before
};

/// Loads with every order, recorded and not: no thread of the loader, and no draw, may allocate. Allocations of
/// libraries that are counted separately are only reported. Returns the maximum of each count.
Counted check_steady_state(const std::string& format, const std::function<Source()>& make, const Sampler& sampler,
                           Growth growth) {
    Counted most;
    const auto check = [&](const Way& way) {
        const bool may_grow = growth != Growth::none && way.reads_ahead;
        const std::size_t quiet = may_grow ? counted_epochs / 2 : counted_epochs;
        Counted counted = load(make(), sampler, way);
        // The recorder's writer thread has a growing ledger, whose pages are not the loader's.
        const bool counts_faults = !way.record && test::counts_allocations();
        // On a busy machine reads in flight may grow for several epochs, and each new buffer has new pages. What
        // allocates, or touches a new page, per sample does so every time.
        const auto grew = [&] {
            return counted.quiet_epochs() < quiet || (counts_faults && counted.faults >= counted.batches);
        };
        for (int more = 0; may_grow && grew() && more < 3; ++more)
            counted = load(make(), sampler, way);
        BOOST_TEST_CONTEXT(format << ", order " << to_string(way.order) << ", record " << way.record << ", reads ahead "
                                  << way.reads_ahead) {
            BOOST_TEST(counted.batches == counted_epochs * sampler.size() / batch_size);
            BOOST_TEST(counted.quiet_epochs() >= quiet,
                       "allocations in " << counted_epochs - counted.quiet_epochs() << " epochs, "
                                         << *std::ranges::max_element(counted.allocations) << " in one");
            if (counts_faults)
                BOOST_TEST(counted.faults < counted.batches);
        }
        most.in_libraries = std::max(most.in_libraries, counted.in_libraries);
        most.faults = std::max(most.faults, way.record ? 0 : counted.faults);
        most.batches = counted.batches;
        most.reads_ahead = std::max(most.reads_ahead, counted.reads_ahead);
    };
    for (const OrderRule order : {OrderRule::in_order(), OrderRule::bounded(1), OrderRule::out_of_order()})
        for (const bool record : {false, true}) {
            check({order, record});
            if (growth == Growth::of_buffers && !record)
                check({order, record, false});
        }
    BOOST_TEST_MESSAGE(format << ": at most " << most.in_libraries << " allocations in libraries and " << most.faults
                              << " minor faults in " << most.batches << " batches, " << most.reads_ahead
                              << " reads ahead");
    return most;
}

/// From now on, counts allocations of these libraries separately; each is identified by the name of one of its
/// functions.
void count_libraries_apart(std::initializer_list<const char*> functions) {
    for (const char* function : functions) {
        const void* address = dlsym(RTLD_DEFAULT, function);
        BOOST_TEST_REQUIRE((address != nullptr), function);
        BOOST_TEST_REQUIRE(test::count_library_apart(address));
    }
}

// ---------------------------------------------------------------------------------------------- data

/// Writes files of four sizes, in two classes.
ImageFolder folder_of(const test::TemporaryFolder& folder, const std::vector<std::vector<std::byte>>& files,
                      const std::string& extension) {
    for (std::size_t i = 0; i < samples; ++i)
        (void)folder.write("in/class" + std::to_string(i % 2) + "/" + std::to_string(1000 + i) + extension,
                           files[i % files.size()]);
    return ImageFolder{folder.path() / "in"};
}

ImageFolder jpegs(const test::TemporaryFolder& folder) {
    std::vector<std::vector<std::byte>> files;
    for (std::uint32_t i = 0; i < 4; ++i)
        files.push_back(test::jpeg(200 - 20 * i, 150 + 10 * i));
    return folder_of(folder, files, ".jpg");
}

std::vector<std::byte> fixture(const std::string& name) {
    std::vector<std::byte> contents;
    read_file((DRAWPOINT_TEST_DIR "/pipeline/image/fixtures/" + name).c_str(), contents);
    return contents;
}

template <class Data, class Decode>
Source recipe(const Data& data, const Decode& decode) {
    return std::make_shared<const ImageRecipe>(data | decode | RandomResizedCrop{32, 32} | RandomHorizontalFlip{});
}

/// `bytes` bytes, each different from its neighbours.
std::vector<std::byte> values(std::size_t bytes) {
    std::vector<std::byte> all(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
        all[i] = static_cast<std::byte>(i * 7 + i / 256);
    return all;
}

/// A file with a header and `bytes` bytes of values.
std::vector<std::byte> with_header(std::span<const unsigned char> header, std::size_t bytes) {
    std::vector<std::byte> file = values(header.size() + bytes);
    std::ranges::copy(std::as_bytes(header), file.begin());
    return file;
}

/// A source that allocates, which no source may do.
class Wasteful final : public SampleSource {
public:
    explicit Wasteful(bool runs) : runs_{runs} {}
    ~Wasteful() override { waste(nullptr); }
    std::size_t size() const noexcept override { return samples; }
    SampleLayout layout() const noexcept override { return {.rank = 1, .shape = {4}}; }
    std::vector<std::string> stages() const override { return {"waste"}; }
    std::string path(std::uint64_t) const override { return {}; }
    std::unique_ptr<WorkerScratch> make_scratch() const override { return std::make_unique<WorkerScratch>(); }
    void fill(SampleTask& task, WorkerScratch&) const override {
        waste(new std::byte[16]);
        task.stage_count = 1;
    }
    bool fills_runs() const noexcept override { return runs_; }
    void fill_run(SampleRun&, WorkerScratch&) const override { waste(new std::byte[16]); }

private:
    void waste(std::byte* memory) const { delete[] last_.exchange(memory); }
    bool runs_;
    mutable std::atomic<std::byte*> last_ = nullptr;
};

BOOST_AUTO_TEST_SUITE(steady_state_formats)

BOOST_AUTO_TEST_CASE(an_allocation_of_a_worker_is_seen_in_every_epoch) {
    const RandomSampler sampler{samples, 7};
    for (const bool runs : {false, true}) {
        const Counted counted = load(std::make_shared<const Wasteful>(runs), sampler, {});
        BOOST_TEST(counted.quiet_epochs() == (test::counts_allocations() ? 0u : counted_epochs));
    }
}

BOOST_AUTO_TEST_CASE(tar_of_jpeg_allocates_nothing_but_in_libjpeg) {
    count_libraries_apart({"jpeg_std_error"});
    const test::TemporaryFolder folder;
    const ImageFolder images = jpegs(folder);
    std::vector<std::uint64_t> order(images.size());
    std::iota(order.begin(), order.end(), 0);
    for (const auto compression : {TarCompression::none, TarCompression::gzip, TarCompression::zstd}) {
        const std::string kind = std::array{"tar", "tar.gz", "tar.zst"}[static_cast<std::size_t>(compression)];
        const auto out = folder.path() / kind;
        (void)pack_image_folder(images, order, {out, 200'000, compression});
        for (const bool sequential : {false, true}) {
            if (!sequential && compression != TarCompression::none)
                continue;
            const TarShards shards{out.string(), {.sequential = sequential, .held = 64}};
            BOOST_TEST(shards.shard_sizes().size() > 1u);
            BOOST_TEST(shards.random_access() != sequential);
            const ShardSampler by_shard{shards.shard_sizes(), 7, 16};
            const RandomSampler at_random{shards.size(), 7};
            (void)check_steady_state(
                kind + (sequential ? ", forward" : ", at random"), [&] { return recipe(shards, decode_jpeg); },
                sequential ? static_cast<const Sampler&>(by_shard) : at_random,
                sequential ? Growth::of_streams : Growth::of_buffers);
        }
    }
}

BOOST_AUTO_TEST_CASE(files_of_jpeg_that_are_read_ahead_allocate_nothing_but_in_libjpeg) {
    count_libraries_apart({"jpeg_std_error"});
    const test::TemporaryFolder folder;
    const ImageFolder images = jpegs(folder);
    const RandomSampler sampler{images.size(), 7};
    (void)check_steady_state("files", [&] { return recipe(images, decode_jpeg); }, sampler, Growth::of_buffers);
    const auto slow = [&] {
        const Source source = recipe(images, decode_jpeg);
        return inject(source, {parse_injection("read-latency=300us")}, 1);
    };
    const Counted most = check_steady_state("files of slow storage", slow, sampler, Growth::of_buffers);
    BOOST_TEST(most.reads_ahead > samples);
}

BOOST_AUTO_TEST_CASE(png_and_webp_allocate_nothing_but_in_their_libraries) {
    count_libraries_apart({"spng_ctx_new", "inflate", "WebPDecode"});
    const RandomSampler sampler{samples, 7};
    const test::TemporaryFolder png, webp;
    const ImageFolder pngs =
        folder_of(png, {fixture("rgb8.png"), fixture("pillow_rgb.png"), fixture("gray8.png")}, ".png");
    (void)check_steady_state("png", [&] { return recipe(pngs, decode_image); }, sampler, Growth::of_buffers);
    const ImageFolder webps = folder_of(webp, {fixture("lossy.webp"), fixture("lossless.webp")}, ".webp");
    (void)check_steady_state("webp", [&] { return recipe(webps, decode_image); }, sampler, Growth::of_buffers);
}

BOOST_AUTO_TEST_CASE(rows_of_array_files_allocate_nothing) {
    const test::TemporaryFolder folder;
    constexpr std::array<unsigned char, 16> idx_begin{0, 0, 8, 3, 0, 0, 0, samples, 0, 0, 0, 28, 0, 0, 0, 28};
    const auto idx_file = folder.write("images.idx", with_header(idx_begin, samples * 28 * 28));
    std::string npy_begin{"\x93NUMPY\x01\0\x76\0", 10};
    npy_begin += "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(samples) + ", 3, 40), }";
    npy_begin.resize(10 + 0x76 - 1, ' ');
    npy_begin += '\n';
    const std::span npy_bytes{reinterpret_cast<const unsigned char*>(npy_begin.data()), npy_begin.size()};
    const auto npy_file = folder.write("rows.npy", with_header(npy_bytes, samples * 3 * 40 * sizeof(float)));
    constexpr std::size_t cifar_record = 1 + 3 * 32 * 32;
    std::vector<std::byte> cifar(samples * cifar_record);
    for (std::size_t i = 0; i < samples; ++i)
        cifar[i * cifar_record] = static_cast<std::byte>(i % 10);
    (void)folder.write("test_batch.bin", cifar);
    const auto records = folder.write("records.bin", values(samples * 100));

    const RandomSampler shuffled{samples, 7};
    const SequentialSampler in_order{samples};
    struct Place {
        const char* name;
        ArrayOptions options;
        const Sampler* sampler;
        Growth growth;
    };
    for (const Place& place :
         {Place{" in memory", {}, &shuffled, Growth::none},
          Place{" on disk", {.memory_limit = 0}, &shuffled, Growth::of_buffers},
          Place{" on disk, in order", {.memory_limit = 0, .sequential = true}, &in_order, Growth::none}}) {
        const auto check = [&](const char* name, const ArrayRows& rows) {
            BOOST_TEST_REQUIRE(rows.size() == samples, name);
            BOOST_TEST(rows.in_memory() == !place.options.memory_limit.has_value(), name << place.name);
            (void)check_steady_state(
                name + std::string{place.name}, [&] { return std::make_shared<const ArrayRows>(rows); }, *place.sampler,
                place.growth);
        };
        check("idx", idx(idx_file, {}, place.options));
        check("idx to float", idx(idx_file, {}, place.options).to_float());
        check("npy", npy(npy_file, {}, place.options));
        check("cifar", cifar10(folder.path(), false, place.options));
        check("raw records", raw_records({.paths = {records},
                                          .layout = {.type = ScalarType::uint8, .rank = 1, .shape = {96}},
                                          .record_bytes = 100,
                                          .data_at = 4,
                                          .label = RecordLabel{.at = 0}},
                                         place.options));
    }
}

BOOST_AUTO_TEST_CASE(tiny_rows_allocate_nothing) {
    const std::vector<std::byte> data = values(samples * 16);
    const RandomSampler sampler{samples, 7};
    (void)check_steady_state(
        "tiny rows", [&] { return std::make_shared<const TensorRows>(data, SampleLayout{.rank = 1, .shape = {4}}); },
        sampler, Growth::none);
}

BOOST_AUTO_TEST_CASE(a_cache_allocates_nothing_once_it_is_full) {
    count_libraries_apart({"jpeg_std_error"});
    const test::TemporaryFolder folder;
    const ImageFolder images = jpegs(folder);
    const RandomSampler sampler{images.size(), 7};
    // Room for all samples, or for half: then the other half is decoded again in each pass.
    for (const std::uint64_t bytes : {32_MiB, 4_MiB})
        for (const bool in_file : {false, true}) {
            const std::string name = std::to_string(bytes >> 20) + (in_file ? " MiB in a file" : " MiB in memory");
            int number = 0;
            const auto of_images = [&] {
                const auto file = in_file ? folder.path() / (name + std::to_string(++number)) : std::filesystem::path{};
                return std::make_shared<const ImageRecipe>(images | decode_jpeg | cached(bytes, file) |
                                                           RandomResizedCrop{32, 32} | RandomHorizontalFlip{});
            };
            (void)check_steady_state("images cached, " + name, of_images, sampler, Growth::of_buffers);
            const auto of_samples = [&] {
                const auto file = in_file ? folder.path() / (name + std::to_string(++number)) : std::filesystem::path{};
                return std::make_shared<const CachedSamples>((images | decode_jpeg | CenterCrop{64, 64}) |
                                                             cached(bytes, file));
            };
            (void)check_steady_state("samples cached, " + name, of_samples, sampler, Growth::of_buffers);
        }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
