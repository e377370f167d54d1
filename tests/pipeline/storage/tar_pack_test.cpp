// Packs an image folder and reads it back; index files.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <stop_token>
#include <system_error>

#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#include <drawpoint/pipeline/sampling/sampler.hpp>
#include "pipeline/storage/tar_index.hpp"
#include "pipeline/storage/tar_help.hpp"

namespace drawpoint {
namespace {

using test::TemporaryFolder;

struct Packed {
    TemporaryFolder folder;
    std::optional<ImageFolder> images;
    TarPackSummary summary;

    explicit Packed(TarCompression compression = TarCompression::none, std::uint64_t shard_bytes = 40'000) {
        test::write_classes_of_noise(folder, "in", 4, 20);
        images.emplace(folder.path() / "in");
        summary = pack("out", compression, shard_bytes);
    }
    TarPackSummary pack(const std::string& name, TarCompression compression, std::uint64_t shard_bytes = 40'000) const {
        return pack_image_folder(*images, test::in_order(images->size()),
                                 {folder.path() / name, shard_bytes, compression});
    }
    std::string out(const std::string& name = "out") const { return (folder.path() / name).string(); }
};

/// Limits the size of files to `bytes`; a write then fails midway, as on a full disk.
class FileLimit {
public:
    explicit FileLimit(rlim_t bytes) : handler_{std::signal(SIGXFSZ, SIG_IGN)} {
        getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{bytes, before_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    FileLimit(const FileLimit&) = delete;
    FileLimit& operator=(const FileLimit&) = delete;
    ~FileLimit() {
        setrlimit(RLIMIT_FSIZE, &before_);
        (void)std::signal(SIGXFSZ, handler_);
    }

private:
    void (*handler_)(int);
    rlimit before_{};
};

void check_same(const TarShards& shards, const ImageFolder& images) {
    BOOST_TEST_REQUIRE(shards.size() == images.size());
    BOOST_TEST(shards.num_classes() == images.num_classes());
    for (std::size_t i = 0; i < images.size(); ++i) {
        BOOST_TEST(shards.label(i) == std::int64_t(images.label(i)));
        BOOST_CHECK(test::read_of(shards, i) == test::file_bytes(images.path(i)));
    }
    for (std::size_t label = 0; label < images.num_classes(); ++label)
        BOOST_TEST(shards.class_name(label) == images.class_name(label));
}

BOOST_AUTO_TEST_SUITE(tar_pack)

BOOST_AUTO_TEST_CASE(a_packed_folder_reads_as_the_folder) {
    for (const auto compression : {TarCompression::none, TarCompression::gzip, TarCompression::zstd}) {
        const Packed packed{compression};
        const TarShards shards{packed.out()};
        check_same(shards, *packed.images);
        BOOST_TEST(packed.summary.samples == 80u);
        BOOST_TEST(packed.summary.shards > 3u);
        BOOST_TEST(shards.shard_sizes().size() == packed.summary.shards);
        BOOST_TEST(shards.indexed_shards() == packed.summary.shards);
        BOOST_TEST(shards.random_access() == (compression == TarCompression::none));
        BOOST_TEST(shards.path(0) == shards.shard_path(0) + ":class0/image_1000.jpg");
        std::uint64_t bytes = 0;
        for (std::size_t shard = 0; shard < packed.summary.shards; ++shard) {
            bytes += shards.shard_bytes(shard);
            BOOST_TEST(shards.shard_bytes(shard) <= 41'000u);
            // The same without the index.
            std::filesystem::remove(shards.shard_path(shard) + ".idx");
        }
        BOOST_TEST(bytes == packed.summary.bytes);
        const TarShards scanned{packed.out()};
        BOOST_TEST(scanned.indexed_shards() == 0u);
        check_same(scanned, *packed.images);
        for (std::size_t i = 0; i < shards.size(); ++i)
            BOOST_TEST(scanned.path(i) == shards.path(i));
    }
}

BOOST_AUTO_TEST_CASE(equal_folders_give_equal_bytes_and_gnu_tar_lists_them) {
    for (const auto compression : {TarCompression::none, TarCompression::gzip, TarCompression::zstd}) {
        const Packed packed{compression};
        packed.pack("again", compression);
        const TarShards shards{packed.out()}, again{packed.out("again")};
        for (std::size_t shard = 0; shard < packed.summary.shards; ++shard) {
            BOOST_CHECK(test::file_bytes(shards.shard_path(shard)) == test::file_bytes(again.shard_path(shard)));
            BOOST_TEST(
                std::system(("tar tf '" + shards.shard_path(shard) + "' > '" + packed.out("list") + "'").c_str()) == 0);
            const auto list = test::file_bytes(packed.out("list"));
            BOOST_TEST(std::ranges::count(list, std::byte{'\n'}) == std::ptrdiff_t(2 * shards.shard_sizes()[shard]));
        }
    }
}

BOOST_AUTO_TEST_CASE(shards_are_as_large_as_asked_for_and_hold_a_sample_at_least) {
    const Packed packed;
    BOOST_TEST(packed.pack("one", TarCompression::none, 1 << 30).shards == 1u);
    const auto each = packed.pack("each", TarCompression::none, 1);
    BOOST_TEST(each.shards == 80u);
    const TarShards shards{packed.out()};
    for (std::size_t shard = 0; shard < packed.summary.shards; ++shard)
        BOOST_TEST(shards.shard_bytes(shard) <= 40'960u);
}

BOOST_AUTO_TEST_CASE(an_order_shuffles_what_is_packed) {
    const Packed packed;
    std::vector<std::uint64_t> order(80);
    RandomSampler{80, 5}.order(0, order);
    (void)pack_image_folder(*packed.images, order, {packed.folder.path() / "shuffled", 40'000, TarCompression::none});
    const TarShards shards{packed.out("shuffled")};
    for (std::size_t i = 0; i < order.size(); ++i)
        BOOST_CHECK(test::read_of(shards, i) == test::file_bytes(packed.images->path(order[i])));
}

BOOST_AUTO_TEST_CASE(names_of_every_kind_stay_apart) {
    const TemporaryFolder folder;
    const std::string long_class(200, 'c');
    const std::vector<std::string> names{"a.b/x.y.jpg",
                                         "a.b/x_y.jpg",
                                         "a.b/x_y.PNG",
                                         "a.b/s/x_y.jpg",
                                         long_class + "/" + std::string(240, 'n') + ".webp",
                                         "b c/\xff\n.jpg"};
    for (std::size_t i = 0; i < names.size(); ++i)
        folder.write("in/" + names[i], test::noise(50 + i, std::uint32_t(i)));
    const ImageFolder images{folder.path() / "in"};
    (void)pack_image_folder(images, test::in_order(images.size()), {folder.path() / "out"});
    for (const bool indexed : {true, false}) {
        const TarShards shards{(folder.path() / "out").string()};
        check_same(shards, images);
        BOOST_TEST(shards.indexed_shards() == (indexed ? 1u : 0u));
        std::filesystem::remove(shards.shard_path(0) + ".idx");
    }
}

BOOST_AUTO_TEST_CASE(a_folder_that_fails_leaves_nothing_behind) {
    const Packed packed;
    const auto entries = [&] {
        return std::distance(std::filesystem::directory_iterator{packed.folder.path()},
                             std::filesystem::directory_iterator{});
    };
    const auto before = entries();
    BOOST_CHECK_EXCEPTION(packed.pack("out", TarCompression::none), std::invalid_argument,
                          [&](const auto& error) { return std::string_view{error.what()}.starts_with(packed.out()); });
    const std::vector<std::uint64_t> wrong{0, 1, 80};
    BOOST_CHECK_THROW((void)pack_image_folder(*packed.images, wrong, {packed.folder.path() / "new"}),
                      std::invalid_argument);
    std::filesystem::remove(packed.images->path(40));
    BOOST_CHECK_THROW(packed.pack("new", TarCompression::none), std::filesystem::filesystem_error);
    BOOST_TEST(entries() == before);
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_grow_is_named_with_the_systems_reason_and_nothing_is_left) {
    const Packed packed;
    const auto entries = [&] {
        return std::distance(std::filesystem::directory_iterator{packed.folder.path()},
                             std::filesystem::directory_iterator{});
    };
    const auto before = entries();
    // Too little for a shard, or for the list of classes.
    for (const auto& [limit, file] : {std::pair{rlim_t{20'000}, "shard-000000.tar"}, {rlim_t{10}, "classes.txt"}}) {
        const FileLimit limited{limit};
        BOOST_CHECK_EXCEPTION(packed.pack("new", TarCompression::none), std::filesystem::filesystem_error,
                              [name = std::string_view{file}](const auto& error) {
                                  return error.code() == std::errc::file_too_large &&
                                         error.path1().string().ends_with(name);
                              });
        BOOST_TEST(entries() == before);
    }
    {
        const FileLimit limited{1000};
        TarIndex index;
        for (int i = 0; i < 100; ++i)
            index.add(0, 1, 2, "name");
        BOOST_CHECK_EXCEPTION(
            write_tar_index(index, packed.out("index")), std::filesystem::filesystem_error, [&](const auto& error) {
                return error.code() == std::errc::file_too_large && error.path1() == packed.out("index");
            });
    }
}

BOOST_AUTO_TEST_CASE(a_packing_that_is_stopped_leaves_nothing_behind) {
    const Packed packed;
    std::stop_source stop;
    stop.request_stop();
    BOOST_CHECK_EXCEPTION((void)pack_image_folder(*packed.images, test::in_order(80),
                                                  {.out = packed.folder.path() / "new", .stop = stop.get_token()}),
                          std::system_error,
                          [](const auto& error) { return error.code() == std::errc::operation_canceled; });
    for (const auto& entry : std::filesystem::directory_iterator{packed.folder.path()})
        BOOST_TEST(entry.path().filename().string().find("new") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_index_is_not_believed_when_the_shard_or_itself_has_changed) {
    const Packed packed{TarCompression::none, 1 << 30};
    const std::filesystem::path shard = TarShards{packed.out()}.shard_path(0), index = shard.string() + ".idx";
    const auto whole = test::file_bytes(index);
    const auto indexed = [&] { return TarShards{packed.out()}.indexed_shards(); };
    const auto with = [&](const test::Bytes& bytes) {
        packed.folder.write("out/shard-000000.tar.idx", bytes);
        return indexed();
    };
    BOOST_TEST(with(whole) == 1u);
    const auto time = std::filesystem::last_write_time(shard);
    std::filesystem::last_write_time(shard, time + std::chrono::seconds{1});
    BOOST_TEST(indexed() == 0u);
    std::filesystem::last_write_time(shard, time);
    BOOST_TEST(indexed() == 1u);
    for (std::size_t at = 0; at < whole.size(); at += 97) {
        auto bytes = whole;
        bytes[at] ^= std::byte{1};
        BOOST_TEST(with(bytes) == 0u);
    }
    for (std::size_t length = 0; length < whole.size(); length += 211)
        BOOST_TEST(with(test::Bytes(whole.begin(), whole.begin() + std::ptrdiff_t(length))) == 0u);
    BOOST_TEST(with({}) == 0u);
    // Forged indexes with a correct checksum. The columns begin at byte 48 and have 80 samples each.
    const auto forged = [&](std::size_t at, std::uint64_t value) {
        auto bytes = whole;
        std::memcpy(bytes.data() + at, &value, 8);
        const std::uint64_t sum = ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size() - 8);
        std::memcpy(bytes.data() + bytes.size() - 8, &sum, 8);
        return bytes;
    };
    const std::size_t offsets = 48, sizes = offsets + 640, labels = sizes + 640, ends = labels + 640;
    std::uint64_t first = 0;
    std::memcpy(&first, whole.data() + offsets, 8);
    BOOST_TEST(with(forged(offsets, first)) == 1u);
    for (const std::size_t place :
         {offsets, sizes, ends, offsets + 8 * 79, ends + 8 * 79, std::size_t{32}, std::size_t{40}})
        for (const std::uint64_t value :
             {std::uint64_t{1} << 40, ~std::uint64_t{0}, std::uint64_t{513}, std::uint64_t{0}})
            if (place != sizes || value > 100'000)   // a smaller size fits and does no harm
                BOOST_TEST(with(forged(place, value)) == 0u);
    for (const std::uint64_t value : {~std::uint64_t{0}, std::uint64_t{1} << 31})
        BOOST_TEST(with(forged(labels, value)) == 0u);
    BOOST_TEST(with(forged(offsets, first + 2048)) == 0u);   // the next one is too close
    BOOST_TEST(with(forged(offsets, first - 512)) == 1u);    // fits, but no header precedes it
    BOOST_CHECK_EXCEPTION(test::read_of(TarShards{packed.out()}, 0), TarError,
                          [&](const TarError& error) { return error.offset() == first - 1024; });
    BOOST_TEST(with({}) == 0u);
    check_same(TarShards{packed.out()}, *packed.images);
    // Of an index whose head contradicts the file's length, only the head is read.
    const auto bytes_read = [] {
        std::ifstream counts{"/proc/self/io"};
        std::string name;
        std::uint64_t bytes = 0;
        counts >> name >> bytes;   // rchar
        return bytes;
    };
    (void)with(whole);
    std::filesystem::resize_file(index, 32 << 20);
    const std::uint64_t before = bytes_read();
    BOOST_TEST(indexed() == 0u);
    BOOST_TEST(bytes_read() - before < 1u << 20);
}

BOOST_AUTO_TEST_CASE(what_follows_the_last_image_of_an_indexed_shard_is_held_to_limits) {
    const Packed packed{TarCompression::gzip, 1 << 30};
    const std::filesystem::path shard = TarShards{packed.out()}.shard_path(0);
    const auto put_index = [&] {   // as if the shard had always been like this
        auto index = test::file_bytes(shard.string() + ".idx");
        struct stat status{};
        BOOST_TEST_REQUIRE(::stat(shard.c_str(), &status) == 0);
        const std::int64_t size = status.st_size,
                           modified = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
        std::memcpy(index.data() + 8, &size, 8);
        std::memcpy(index.data() + 16, &modified, 8);
        const std::uint64_t sum = ::crc32_z(0, reinterpret_cast<const Bytef*>(index.data()), index.size() - 8);
        std::memcpy(index.data() + index.size() - 8, &sum, 8);
        packed.folder.write("out/" + shard.filename().string() + ".idx", index);
    };
    const auto append = [&](const std::string& bytes) {
        BOOST_TEST_REQUIRE(
            std::system(("head -c " + bytes + " /dev/zero | gzip -1 >> '" + shard.string() + "'").c_str()) == 0);
        put_index();
        TarShards shards{packed.out()};
        BOOST_TEST(shards.indexed_shards() == 1u);
        return shards;
    };
    check_same(append("1000000"), *packed.images);
    BOOST_CHECK_EXCEPTION(test::read_of(append("68000000"), 79), TarError, [](const TarError& error) {
        return std::string_view{error.what()}.find("no end of the padding") != std::string_view::npos;
    });
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
