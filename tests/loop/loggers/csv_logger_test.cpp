#include <drawpoint/loop/loggers/file_loggers.hpp>

#include <array>
#include <csignal>
#include <limits>
#include <system_error>

#include <boost/test/unit_test.hpp>
#include <sys/resource.h>

#include "support/temporary_folder.hpp"

namespace {

using namespace drawpoint;
using test::bytes_in;

/// Limits the size of files that this process writes, during its lifetime.
class FileSizeLimit {
public:
    explicit FileSizeLimit(rlim_t bytes) : handler_{std::signal(SIGXFSZ, SIG_IGN)} {
        ::getrlimit(RLIMIT_FSIZE, &before_);
        const rlimit limit{bytes, before_.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }
    FileSizeLimit(const FileSizeLimit&) = delete;
    FileSizeLimit& operator=(const FileSizeLimit&) = delete;
    ~FileSizeLimit() {
        ::setrlimit(RLIMIT_FSIZE, &before_);
        std::signal(SIGXFSZ, handler_);
    }

private:
    rlimit before_{};
    void (*handler_)(int);
};

}   // namespace

BOOST_AUTO_TEST_SUITE(csv_logger)

BOOST_AUTO_TEST_CASE(a_record_is_in_the_file_as_soon_as_it_is_logged_and_reads_back_exactly) {
    const test::TemporaryFolder folder;
    CsvLogger logger{folder / "runs/one/metrics.csv"};
    const std::array scalars{Scalar{"throughput/step", 0.1}, Scalar{"a,\"b\"", 1.0 / 3}};
    logger.log_scalars(scalars, 12);
    BOOST_TEST(bytes_in(folder / "runs/one/metrics.csv") ==
               "step,name,value\n12,throughput/step,0.1\n12,\"a,\"\"b\"\"\",0.3333333333333333\n");
}

BOOST_AUTO_TEST_CASE(what_is_not_finite_is_written_by_name) {
    const test::TemporaryFolder folder;
    CsvLogger logger{folder / "metrics.csv"};
    const std::array scalars{Scalar{"a", std::numeric_limits<double>::quiet_NaN()},
                             Scalar{"b", -std::numeric_limits<double>::infinity()}};
    logger.log_scalars(scalars, 1);
    BOOST_TEST(bytes_in(folder / "metrics.csv") == "step,name,value\n1,a,nan\n1,b,-inf\n");
}

BOOST_AUTO_TEST_CASE(summaries_and_tables_stand_in_files_beside_it) {
    const test::TemporaryFolder folder;
    CsvLogger logger{folder / "metrics.csv"};
    const std::array durations{0.5, 0.25};
    logger.log_summary("fit/epoch_duration", durations);
    logger.log_table("profile/report", {{"Phase", "Samples/Second"}, {{"fit", "1,234"}}});
    BOOST_TEST(bytes_in(folder / "metrics.summary.csv") ==
               "name,index,value\nfit/epoch_duration,0,0.5\nfit/epoch_duration,1,0.25\n");
    BOOST_TEST(bytes_in(folder / "metrics.profile_report.csv") == "Phase,Samples/Second\nfit,\"1,234\"\n");
}

BOOST_AUTO_TEST_CASE(a_resumed_run_goes_on_after_the_line_that_a_killed_one_left_unfinished) {
    const test::TemporaryFolder folder;
    std::ofstream{folder / "metrics.csv"} << "step,name,value\n1,a,2.0\n2,a,1";
    const std::array scalars{Scalar{"a", 3}};
    CsvLogger{folder / "metrics.csv", true}.log_scalars(scalars, 3);
    BOOST_TEST(bytes_in(folder / "metrics.csv") == "step,name,value\n1,a,2.0\n2,a,1\n3,a,3\n");
}

BOOST_AUTO_TEST_CASE(a_new_run_begins_the_file_anew) {
    const test::TemporaryFolder folder;
    std::ofstream{folder / "metrics.csv"} << "what an older run left";
    const CsvLogger logger{folder / "metrics.csv"};
    BOOST_TEST(bytes_in(folder / "metrics.csv") == "step,name,value\n");
}

BOOST_AUTO_TEST_CASE(a_full_disk_is_told_and_never_thrown) {
    CsvLogger logger{"/dev/full"};
    const std::array scalars{Scalar{"a", 1}};
    logger.log_scalars(scalars, 1);
    logger.log_scalars(scalars, 2);
    BOOST_TEST(logger.error() == "/dev/full: No space left on device");
}

BOOST_AUTO_TEST_CASE(a_record_that_does_not_fit_leaves_no_part_of_itself) {
    const test::TemporaryFolder folder;
    CsvLogger logger{folder / "metrics.csv"};
    const std::array small{Scalar{"a", 1}};
    const std::string long_name(8000, 'b');
    const std::array large{Scalar{long_name, 2}};
    {
        const FileSizeLimit limit{4096};
        logger.log_scalars(small, 1);
        logger.log_scalars(large, 2);
    }
    logger.log_scalars(small, 3);   // a logger that has failed stays failed
    BOOST_TEST(bytes_in(folder / "metrics.csv") == "step,name,value\n1,a,1\n");
    BOOST_TEST(logger.error().find("metrics.csv: File too large") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_table_that_cannot_be_written_is_told_and_never_thrown) {
    const test::TemporaryFolder folder;
    CsvLogger logger{folder / "metrics.csv"};
    std::filesystem::create_directory(folder / "metrics.report.csv");
    logger.log_table("report", {{"a"}, {}});
    BOOST_TEST(logger.error().find("metrics.report.csv") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_made_is_refused_by_name_at_once) {
    const test::TemporaryFolder folder;
    std::ofstream{folder / "file"} << "not a folder";
    BOOST_CHECK_EXCEPTION(
        CsvLogger{folder / "file/metrics.csv"}, std::system_error,
        [](const std::system_error& error) { return std::string{error.what()}.find("file") != std::string::npos; });
}

BOOST_AUTO_TEST_SUITE_END()
