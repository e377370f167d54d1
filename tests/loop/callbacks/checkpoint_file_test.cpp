#include <drawpoint/loop/callbacks/checkpoint_file.hpp>

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/temporary_folder.hpp"

namespace drawpoint {
namespace {

using test::bytes_in, test::put_bytes, test::TemporaryFolder;

Checkpoint example() {
    Checkpoint checkpoint;
    checkpoint.set_integer("epochs", 3);
    checkpoint.set_number("rate", 0.1);
    checkpoint.set_numbers("losses", {1.5, std::numeric_limits<double>::infinity(), -0.0});
    checkpoint.set_numbers("none", {});
    checkpoint.set_text("model", "mlp \"a\"\n");
    static const std::vector<float> weights{1, 2, 3, 4, 5, 6};
    checkpoint.set("weights", {"F32", {2, 3}, std::as_bytes(std::span{weights}), nullptr});
    return checkpoint;
}

std::string refused(const std::filesystem::path& file) {
    try {
        (void)Checkpoint::read(file);
    } catch (const CheckpointError& error) {
        return error.what();
    }
    return "";
}

/// Parses the header of a safetensors file by its specification.
nlohmann::json header_of(const std::string& bytes) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    return nlohmann::json::parse(bytes.substr(8, length));
}

}   // namespace

BOOST_AUTO_TEST_SUITE(checkpoint_file)

BOOST_AUTO_TEST_CASE(what_was_written_is_read_back) {
    const TemporaryFolder folder;
    example().write(folder / "run.ckpt");
    const Checkpoint read = Checkpoint::read(folder / "run.ckpt");
    BOOST_TEST(read.integer("epochs") == 3);
    BOOST_TEST(read.number("rate") == 0.1);
    BOOST_TEST(read.text("model") == "mlp \"a\"\n");
    BOOST_TEST(read.numbers("none").empty());
    const std::vector<double> losses = read.numbers("losses");
    BOOST_REQUIRE_EQUAL(losses.size(), 3);
    BOOST_TEST(std::isinf(losses[1]));
    BOOST_TEST(std::signbit(losses[2]));
    const Checkpoint::Array* weights = read.find("weights");
    BOOST_REQUIRE(weights != nullptr);
    BOOST_TEST((weights->shape == std::vector<std::int64_t>{2, 3}));
    BOOST_TEST(weights->type == "F32");
    float last = 0;
    std::memcpy(&last, weights->data.data() + 20, sizeof last);
    BOOST_TEST(last == 6);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(weights->data.data()) % sizeof(float) == 0);
}

BOOST_AUTO_TEST_CASE(the_file_is_a_safetensors_file) {
    const TemporaryFolder folder;
    example().write(folder / "run.ckpt");
    const std::string bytes = bytes_in(folder / "run.ckpt");
    const nlohmann::json header = header_of(bytes);
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    BOOST_TEST(length % 8 == 0);
    BOOST_TEST(header["weights"]["dtype"] == "F32");
    BOOST_TEST(header["weights"]["shape"] == nlohmann::json({2, 3}));
    for (const auto& [key, value] : header["__metadata__"].items())
        BOOST_TEST(value.is_string());
    // No gap and no overlap, both of which the format's readers refuse.
    std::vector<std::pair<std::size_t, std::size_t>> ranges;
    for (const auto& [name, value] : header.items())
        if (name != "__metadata__")
            ranges.emplace_back(value["data_offsets"][0], value["data_offsets"][1]);
    std::sort(ranges.begin(), ranges.end());
    std::size_t at = 0;
    for (const auto& [from, to] : ranges) {
        BOOST_TEST(from == at);
        at = to;
    }
    BOOST_TEST(8 + length + at == bytes.size());
}

BOOST_AUTO_TEST_CASE(every_array_is_aligned_in_the_file) {
    const TemporaryFolder folder;
    Checkpoint checkpoint;
    const std::vector<std::byte> data(3 * 8);
    const std::span<const std::byte> bytes{data};
    checkpoint.set("a", {.type = "U8", .shape = {3}, .data = bytes.first(3)});
    checkpoint.set("b", {.type = "F64", .shape = {3}, .data = bytes});
    checkpoint.set("c", {.type = "F32", .shape = {3}, .data = bytes.first(12)});
    checkpoint.set("d", {.type = "F16", .shape = {3}, .data = bytes.first(6)});
    checkpoint.write(folder / "run.ckpt");
    const nlohmann::json header = header_of(bytes_in(folder / "run.ckpt"));
    for (const auto& [name, size] : {std::pair{"b", 8u}, {"c", 4u}, {"d", 2u}})
        BOOST_TEST(header[name]["data_offsets"][0].get<std::size_t>() % size == 0, name);
}

BOOST_AUTO_TEST_CASE(a_file_cut_at_any_byte_is_refused) {
    const TemporaryFolder folder;
    example().write(folder / "run.ckpt");
    const std::string whole = bytes_in(folder / "run.ckpt");
    for (std::size_t length = 0; length < whole.size(); ++length) {
        put_bytes(folder / "cut.ckpt", whole.substr(0, length));
        BOOST_TEST(refused(folder / "cut.ckpt").starts_with((folder / "cut.ckpt").string() + ": is "));
    }
    put_bytes(folder / "cut.ckpt", whole.substr(0, whole.size() - 1));
    BOOST_TEST(refused(folder / "cut.ckpt") == (folder / "cut.ckpt").string() +
                                                   ": is cut short: " + std::to_string(whole.size() - 1) + " of " +
                                                   std::to_string(whole.size()) + " bytes are there");
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_anywhere_is_refused) {
    const TemporaryFolder folder;
    example().write(folder / "run.ckpt");
    const std::string whole = bytes_in(folder / "run.ckpt");
    for (std::size_t at = 0; at < whole.size(); ++at) {
        std::string changed = whole;
        changed[at] = static_cast<char>(changed[at] ^ (1 << at % 8));
        put_bytes(folder / "bad.ckpt", changed);
        BOOST_TEST(refused(folder / "bad.ckpt").starts_with((folder / "bad.ckpt").string() + ": "),
                   "byte " << at << " was not missed");
    }
}

BOOST_AUTO_TEST_CASE(a_file_larger_than_its_header_says_is_refused_before_it_is_read) {
    constexpr std::uint64_t hole = std::uint64_t{1} << 40;   // more than there is memory for
    const TemporaryFolder folder;
    example().write(folder / "long.ckpt");
    std::filesystem::resize_file(folder / "long.ckpt", std::filesystem::file_size(folder / "long.ckpt") + hole);
    BOOST_TEST(refused(folder / "long.ckpt").ends_with(": is damaged: 1099511627776 bytes follow its arrays"));
    put_bytes(folder / "empty.ckpt", "");
    std::filesystem::resize_file(folder / "empty.ckpt", hole);
    BOOST_TEST(refused(folder / "empty.ckpt").ends_with(": is no checkpoint"));
}

BOOST_AUTO_TEST_CASE(other_files_are_refused_by_name_and_kind) {
    const TemporaryFolder folder;
    BOOST_TEST(
        refused(folder / "none.ckpt").ends_with("none.ckpt: cannot read the checkpoint: No such file or directory"));
    BOOST_TEST(refused(folder.path()).ends_with(": is no checkpoint: not a file"));
    BOOST_REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
    BOOST_TEST(refused(folder / "pipe").ends_with(": is no checkpoint: not a file"));
    put_bytes(folder / "text", "epoch,loss\n1,0.5\n");
    BOOST_TEST(refused(folder / "text").ends_with(": is no checkpoint"));
    put_bytes(folder / "foreign", std::string("\x02\0\0\0\0\0\0\0{}", 10));
    BOOST_TEST(refused(folder / "foreign").ends_with(": is a safetensors file, but no checkpoint of drawpoint"));
    example().write(folder / "newer");
    std::string newer = bytes_in(folder / "newer");
    const std::string key = R"("drawpoint.checkpoint":")";
    newer[newer.find(key) + key.size()] = '2';
    put_bytes(folder / "newer", newer);
    BOOST_TEST(
        refused(folder / "newer").ends_with(": is a checkpoint of another version (2), this program reads version 1"));
}

BOOST_AUTO_TEST_CASE(a_header_that_nests_a_million_times_is_refused) {
    const TemporaryFolder folder;
    const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
    for (const std::string& header :
         {R"({"__metadata__":{"x":)" + deep + "}}", R"({"__metadata__":)" + deep + "}",
          R"({"__metadata__":{"drawpoint.checkpoint":"1"},"a":{"data_offsets":)" + deep + "}}"}) {
        std::string length(8, '\0');
        const std::uint64_t bytes = header.size();
        std::memcpy(length.data(), &bytes, 8);
        put_bytes(folder / "deep", length + header);
        BOOST_TEST(refused(folder / "deep") != "");
    }
}

BOOST_AUTO_TEST_CASE(what_is_missing_or_of_another_type_is_named) {
    const TemporaryFolder folder;
    example().write(folder / "run.ckpt");
    const Checkpoint read = Checkpoint::read(folder / "run.ckpt");
    const auto says = [&](auto ask, const std::string& what) {
        BOOST_CHECK_EXCEPTION((void)ask(), CheckpointError, [&](const CheckpointError& error) {
            return error.what() == (folder / "run.ckpt").string() + ": " + what;
        });
    };
    says([&] { return read.integer("steps"); }, "steps is not in it");
    says([&] { return read.integer("rate"); }, "rate is not of the type it should be");
    says([&] { return read.number("losses"); }, "losses is not of the type it should be");
    says([&] { return read.text("optimizer"); }, "optimizer is not in it");
    BOOST_TEST(read.find("model") == nullptr);
}

BOOST_AUTO_TEST_CASE(a_write_that_fails_leaves_the_old_file_and_nothing_else) {
    const TemporaryFolder folder;
    example().write(folder / "run.ckpt");
    const std::string before = bytes_in(folder / "run.ckpt");
    Checkpoint larger = example();
    larger.set_numbers("many", std::vector<double>(100'000, 1.0));

    rlimit limit{};
    getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit small{4096, limit.rlim_max};
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    std::string error;
    try {
        larger.write(folder / "run.ckpt");
    } catch (const CheckpointError& thrown) {
        error = thrown.what();
    }
    setrlimit(RLIMIT_FSIZE, &limit);
    std::signal(SIGXFSZ, handler);

    BOOST_TEST(error == (folder / "run.ckpt").string() + ": cannot write the checkpoint: File too large");
    BOOST_TEST(bytes_in(folder / "run.ckpt") == before);
    BOOST_TEST(std::distance(std::filesystem::directory_iterator{folder.path()}, {}) == 1);
}

BOOST_AUTO_TEST_CASE(what_a_crash_left_half_written_is_neither_read_nor_in_the_way) {
    const TemporaryFolder folder;
    example().write(folder / "run.ckpt");
    const std::filesystem::path left = folder / fmt::format("run.ckpt.{}.0.tmp", ::getpid());
    put_bytes(left, bytes_in(folder / "run.ckpt").substr(0, 100) + std::string(100'000, 'x'));
    BOOST_TEST(Checkpoint::read(folder / "run.ckpt").integer("epochs") == 3);
    Checkpoint next = example();
    next.set_integer("epochs", 4);
    next.write(folder / "run.ckpt");
    BOOST_TEST(Checkpoint::read(folder / "run.ckpt").integer("epochs") == 4);
    BOOST_TEST(std::filesystem::file_size(left) > 100'000u);   // another run may be writing it
}

BOOST_AUTO_TEST_CASE(a_link_stays_one_and_what_it_points_to_is_replaced_with_its_permissions) {
    const TemporaryFolder folder;
    create_directory(folder / "kept");
    put_bytes(folder / "kept/run.ckpt", "before");
    const auto mode = std::filesystem::perms::owner_read | std::filesystem::perms::owner_write;
    permissions(folder / "kept/run.ckpt", mode);
    create_symlink("kept/run.ckpt", folder / "run.ckpt");
    example().write(folder / "run.ckpt");
    BOOST_TEST(is_symlink(folder / "run.ckpt"));
    BOOST_TEST(Checkpoint::read(folder / "kept/run.ckpt").integer("epochs") == 3);
    BOOST_TEST((status(folder / "kept/run.ckpt").permissions() == mode));
    BOOST_TEST(std::distance(std::filesystem::directory_iterator{folder / "kept"}, {}) == 1);
    create_symlink(folder / "kept/later.ckpt", folder / "later.ckpt");   // its target does not exist yet
    example().write(folder / "later.ckpt");
    BOOST_TEST(is_symlink(folder / "later.ckpt"));
    BOOST_TEST(Checkpoint::read(folder / "kept/later.ckpt").integer("epochs") == 3);
}

BOOST_AUTO_TEST_CASE(runs_that_write_one_checkpoint_at_once_each_write_it_whole) {
    const TemporaryFolder folder;
    std::vector<std::thread> runs;
    for (std::int64_t run = 0; run < 4; ++run)
        runs.emplace_back([&, run] {
            Checkpoint mine = example();
            mine.set_numbers("many", std::vector<double>(10'000, static_cast<double>(run)));
            mine.set_integer("run", run);
            for (int i = 0; i < 10; ++i)
                mine.write(folder / "run.ckpt");
        });
    for (std::thread& run : runs)
        run.join();
    const Checkpoint last = Checkpoint::read(folder / "run.ckpt");
    BOOST_TEST((last.numbers("many") == std::vector<double>(10'000, static_cast<double>(last.integer("run")))));
    BOOST_TEST(std::distance(std::filesystem::directory_iterator{folder.path()}, {}) == 1);
}

BOOST_AUTO_TEST_CASE(a_place_that_takes_no_file_is_named) {
    const TemporaryFolder folder;
    const auto failure = [&](const std::filesystem::path& file) -> std::string {
        try {
            example().write(file);
        } catch (const CheckpointError& error) {
            return error.what();
        }
        return "";
    };
    BOOST_TEST(failure(folder / "none/run.ckpt")
                   .ends_with("none/run.ckpt: cannot write the checkpoint: No such file or directory"));
    create_directory(folder / "sub");
    BOOST_TEST(failure(folder / "sub").ends_with("sub: cannot write the checkpoint: Is a directory"));
    BOOST_TEST(std::distance(std::filesystem::directory_iterator{folder.path()}, {}) == 1);
    const std::filesystem::path pipe = folder / "pipe";
    BOOST_REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    BOOST_TEST(failure(pipe).ends_with("pipe: not a file, so no checkpoint goes there"));
    BOOST_TEST(is_fifo(pipe));   // not replaced by a file
}

BOOST_AUTO_TEST_CASE(an_array_that_is_not_as_large_as_it_says_is_refused_when_set) {
    Checkpoint checkpoint;
    const std::vector<std::byte> four(4);
    BOOST_CHECK_THROW(checkpoint.set("a", {"F32", {2}, four, nullptr}), std::invalid_argument);
    BOOST_CHECK_THROW(checkpoint.set("a", {"F31", {1}, four, nullptr}), std::invalid_argument);
    BOOST_CHECK_THROW(checkpoint.set("a", {"U8", {-4}, four, nullptr}), std::invalid_argument);
    BOOST_CHECK_THROW(checkpoint.set("a", {"U8", {std::int64_t{1} << 62, 4}, {}, nullptr}), std::invalid_argument);
    checkpoint.set("a", {"F32", {}, four, nullptr});
    BOOST_TEST(checkpoint.names("").size() == 1);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
