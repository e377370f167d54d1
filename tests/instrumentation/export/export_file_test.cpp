#include <boost/test/unit_test.hpp>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <stdexcept>
#include <string>
#include <system_error>

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <drawpoint/instrumentation/export/file.hpp>

#include "tests/instrumentation/export/operator_run.hpp"
#include "tests/support/temporary_folder.hpp"

namespace {

using namespace drawpoint;
using namespace drawpoint::test;
namespace fs = std::filesystem;

std::size_t files_in(const TemporaryFolder& folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator{folder.path()}, fs::directory_iterator{}));
}

std::string contents(const fs::path& file) {   // decompresses if needed
    gzFile stream = gzopen(file.c_str(), "rb");
    BOOST_REQUIRE(stream);
    std::string text;
    char block[4096];
    for (int got; (got = gzread(stream, block, sizeof block)) > 0;)
        text.append(block, static_cast<std::size_t>(got));
    gzclose(stream);
    return text;
}

bool is_compressed(const fs::path& file) {
    std::ifstream stream{file, std::ios::binary};
    return stream.get() == 0x1f && stream.get() == 0x8b;
}

/// Limits the size of files that this process writes, during its lifetime.
class SmallDisk {
public:
    explicit SmallDisk(rlim_t bytes) : handler_{std::signal(SIGXFSZ, SIG_IGN)} {
        getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{bytes, before_.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
    }
    ~SmallDisk() {
        setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }
    SmallDisk(const SmallDisk&) = delete;
    SmallDisk& operator=(const SmallDisk&) = delete;

private:
    rlimit before_{};
    void (*handler_)(int);
};

std::string error_of(const fs::path& file, bool gzip, const std::function<void(std::ostream&)>& write) {
    try {
        write_file_whole(file, gzip, write);
    } catch (const std::system_error& error) {
        return error.what();
    }
    return "no error";
}

BOOST_AUTO_TEST_SUITE(export_file)

BOOST_AUTO_TEST_CASE(a_file_holds_what_the_stream_does_compressed_where_its_name_says) {
    const TemporaryFolder folder;
    const Ledger ledger = hand_made::one_epoch();
    for (const ExportFormat format :
         {ExportFormat::chrome, ExportFormat::speedscope, ExportFormat::folded, ExportFormat::csv, ExportFormat::json})
        for (const bool gzip : {false, true}) {
            const fs::path file =
                folder.path() / (std::string{"run"} + std::string{extension_of(format)} + (gzip ? ".gz" : ""));
            drawpoint::export_file(ledger, format, file);
            BOOST_TEST(is_compressed(file) == gzip);
            BOOST_TEST(contents(file) ==
                       text_of([&](std::ostream& out) { write_export(ledger, format, out, file.string()); }));
            BOOST_TEST(contents(file).size() > 100u);
        }
    BOOST_TEST(files_in(folder) == 10u);
}

BOOST_AUTO_TEST_CASE(every_format_is_found_by_its_name) {
    for (std::size_t i = 0; i < export_format_count; ++i) {
        const auto format = static_cast<ExportFormat>(i);
        BOOST_TEST((export_format(name_of(format)) == format));
    }
    BOOST_TEST(!export_format("perfetto-sql"));
    BOOST_TEST(!export_format(""));
}

BOOST_AUTO_TEST_CASE(a_failing_disk_leaves_no_half_file) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "run.json";
    for (const bool gzip : {false, true}) {
        const SmallDisk disk{40'000};
        std::uint32_t random = 1;
        const std::string error = error_of(file, gzip, [&](std::ostream& out) {
            for (int i = 0; i < 2'000'000; ++i)
                out.put(static_cast<char>((random = random * 1664525 + 1013904223) >> 24));
        });
        BOOST_TEST(error == file.string() + ": File too large");
        BOOST_TEST(files_in(folder) == 0u);
    }
}

BOOST_AUTO_TEST_CASE(a_failing_write_leaves_the_old_file_as_it_was) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "run.json";
    std::ofstream{file} << "old";
    BOOST_CHECK_THROW(write_file_whole(file, false,
                                       [](std::ostream& out) {
                                           out << "new";
                                           throw std::runtime_error{"no"};
                                       }),
                      std::runtime_error);
    BOOST_TEST(error_of(file, false, [](std::ostream& out) { out.setstate(std::ios::badbit); }) ==
               file.string() + ": Input/output error");
    BOOST_TEST(contents(file) == "old");
    BOOST_TEST(files_in(folder) == 1u);
    fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
    write_file_whole(file, false, [](std::ostream& out) { out << "new"; });
    BOOST_TEST(contents(file) == "new");
    BOOST_TEST((fs::status(file).permissions() == (fs::perms::owner_read | fs::perms::owner_write)));
}

BOOST_AUTO_TEST_CASE(a_path_that_cannot_be_written_is_named) {
    const TemporaryFolder folder;
    const auto nothing_to_write = [](std::ostream&) {};
    const fs::path missing = folder.path() / "none/run.json";
    BOOST_TEST(error_of(missing, false, nothing_to_write) == missing.string() + ": No such file or directory");
    BOOST_TEST(error_of(folder.path(), false, nothing_to_write) == folder.path().string() + ": Is a directory");
}

BOOST_AUTO_TEST_CASE(a_device_is_written_to_and_never_replaced) {
    BOOST_TEST(error_of("/dev/full", false, [](std::ostream& out) { out << "text"; }) ==
               "/dev/full: No space left on device");
    write_file_whole("/dev/null", false, [](std::ostream& out) { out << "text"; });
    BOOST_TEST(fs::is_character_file("/dev/null"));
}

BOOST_AUTO_TEST_CASE(a_link_stays_one) {
    const TemporaryFolder folder;
    std::ofstream{folder.path() / "target"} << "old";
    fs::create_symlink("target", folder.path() / "link");
    write_file_whole(folder.path() / "link", false, [](std::ostream& out) { out << "new"; });
    BOOST_TEST(fs::is_symlink(folder.path() / "link"));
    BOOST_TEST(contents(folder.path() / "target") == "new");
}

BOOST_AUTO_TEST_CASE(traces_for_tensorboard_are_named_by_worker_and_time) {
    const TemporaryFolder folder;
    const fs::path log = folder.path() / "a/b";
    const std::regex named{R"(me\.\d{19}\.pt\.trace\.json)"}, zipped{R"(.+_(\d+)\.\d{19}\.pt\.trace\.json\.gz)"};
    const fs::path file = tensorboard_trace_file(log, "me");
    BOOST_TEST(fs::is_directory(log));
    BOOST_TEST(file.parent_path() == log);
    BOOST_TEST(std::regex_match(file.filename().string(), named), file);
    const std::string name = tensorboard_trace_file(log, {}, true).filename().string();
    std::smatch found;
    BOOST_REQUIRE(std::regex_match(name, found, zipped));
    BOOST_TEST(found[1] == std::to_string(getpid()));
    std::ofstream{folder.path() / "file"} << "in the way";
    BOOST_CHECK_EXCEPTION((void)tensorboard_trace_file(folder.path() / "file/log"), std::runtime_error,
                          [&](const std::runtime_error& error) {
                              return error.what() == "Can't create directory: " + (folder.path() / "file/log").string();
                          });
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
