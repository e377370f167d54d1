#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include <drawpoint/instrumentation/host/host.hpp>
#include <drawpoint/instrumentation/host/detail/host_counters.hpp>

#include <fcntl.h>
#include "tests/support/temporary_folder.hpp"
#include <unistd.h>

namespace {

using namespace drawpoint;

/// A machine whose /proc and /sys are files of the test.
struct Files : test::TemporaryFolder {
    void put(const std::string& name, std::string_view text) const {
        std::filesystem::create_directories((*this / name).parent_path());
        test::put_bytes(*this / name, text);
    }
    [[nodiscard]] HostRow read(std::vector<std::uint32_t> cores = {0, 1}) const {
        return HostCounters{path(), std::move(cores)}.read(7);
    }
};

constexpr std::int64_t ms = 1'000'000;

BOOST_AUTO_TEST_SUITE(host_counters)

BOOST_AUTO_TEST_CASE(busy_and_steal_are_those_of_our_cores_and_guests_are_inside_user) {
    const Files files;
    files.put("proc/stat", "cpu  10 9999 9999 9999 9999 9999 9999 9999 9999 9999\n"
                           "cpu0 1 20 300 7777 8888 4000 50000 6 1 1\n"
                           "cpu1 900000 1 1 1 1 1 1 1 1 1\n"
                           "cpu10 0 0 0 5 5 0 1 70 0 0\n"
                           "intr 5 5\ncpu0 999999 1 1 1 1 1 1 1 1 1\n");
    const HostRow row = files.read({10, 0});   // no line of a core follows the line of interrupts
    BOOST_TEST(row.at_ns == 7);
    const std::int64_t tick = 1'000'000'000 / ::sysconf(_SC_CLK_TCK);
    BOOST_TEST(row.busy_ns == (1 + 20 + 300 + 4000 + 50000 + 1) * tick);
    BOOST_TEST(row.steal_ns == (6 + 70) * tick);
    BOOST_TEST(files.read({3}).busy_ns == no_stamp);
}

BOOST_AUTO_TEST_CASE(an_old_kernels_short_line_has_no_steal_and_a_broken_one_nothing) {
    const Files files;
    const std::int64_t tick = 1'000'000'000 / ::sysconf(_SC_CLK_TCK);
    files.put("proc/stat", "cpu0 1 2 3 4\n");
    BOOST_TEST(files.read().busy_ns == 6 * tick);
    BOOST_TEST(files.read().steal_ns == no_stamp);
    for (const char* line :
         {"cpu0 1 2 3\n", "cpu0 1 x 3 4 5 6 7 8\n", "cpux 1 2 3 4 5 6 7 8\n", "cpu0 1 -2 3 4 5 6 7 8\n",
          "cpu0 99999999999999999999 2 3 4 5 6 7 8\n", "cpu0 9000000000000000000 2 3 4 5 6 7 8\n",
          "cpu0 900000000000 900000000000 3 4 5 6 7 8\n", "", "\n"}) {
        files.put("proc/stat", line);
        BOOST_TEST_CONTEXT(line) BOOST_TEST(files.read().busy_ns == no_stamp);
    }
}

BOOST_AUTO_TEST_CASE(a_line_that_the_room_cuts_is_left_out_whole) {
    const Files files;
    const std::int64_t tick = 1'000'000'000 / ::sysconf(_SC_CLK_TCK);
    std::string lines;
    for (int core = 0; core < 4000; ++core)
        lines += "cpu" + std::to_string(core) + " 123456789 0 0 0 0 0 0 0 0 0\n";
    std::vector<std::uint32_t> ours;
    for (std::uint32_t core = 1; core < 60; ++core)
        ours.push_back(core);
    // a truncated line "cpu504 …" does not count as a second core 50
    for (std::size_t shift = 0; shift < 36; ++shift) {
        files.put("proc/stat", "cpu  " + std::string(shift, '1') + "\n" + lines);
        BOOST_REQUIRE(files.read(ours).busy_ns == 123456789 * tick * 59);
        BOOST_REQUIRE(files.read({3999}).busy_ns == no_stamp);
    }
}

BOOST_AUTO_TEST_CASE(throttling_is_summed_over_the_cgroup_and_those_above_it) {
    const Files files;
    files.put("proc/self/cgroup", "4:memory:/elsewhere\n0::/a/b\n");
    BOOST_TEST(files.read().throttled_ns == no_stamp);
    files.put("sys/fs/cgroup/cpu.stat", "usage_usec 5\n");   // that of the root group: it has no quota
    files.put("sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nnr_throttled 1\nthrottled_usec 300\n");
    BOOST_TEST(files.read().throttled_ns == 300'000);
    files.put("sys/fs/cgroup/a/b/cpu.stat", "nr_throttled 1\nthrottled_usec 40\nnr_bursts 0\n");
    files.put("sys/fs/cgroup/a/b/c/cpu.stat", "throttled_usec 1000000\n");
    HostCounters counters{files.path(), {0}};
    BOOST_TEST(counters.read(0).throttled_ns == 340'000);
    files.put("sys/fs/cgroup/a/b/cpu.stat", "nr_throttled 1\nthrottled_usec 41\nnr_bursts 0\n");
    BOOST_TEST(counters.read(0).throttled_ns == 341'000);   // read again each time
    files.put("sys/fs/cgroup/a/b/cpu.stat", "throttled_usec lots\n");
    BOOST_TEST(counters.read(0).throttled_ns == no_stamp);
}

BOOST_AUTO_TEST_CASE(version_1_counts_where_version_2_does_not) {
    const Files files;
    files.put("proc/self/cgroup", "3:cpu,cpuacct:/docker/x\n0::/\n");
    files.put("sys/fs/cgroup/unified/cpu.stat", "usage_usec 5\n");
    files.put("sys/fs/cgroup/cpu,cpuacct/cpu.stat",
              "nr_periods 0\nthrottled_time 123\n");   // inside a container, its own group is the root
    BOOST_TEST(files.read().throttled_ns == 123);
    files.put("sys/fs/cgroup/cpu/cpu.stat", "nr_periods 0\nthrottled_time 123\n");   // the same folder by another name
    BOOST_TEST(files.read().throttled_ns == 123);
}

BOOST_AUTO_TEST_CASE(pressure_is_the_total_of_some) {
    const Files files;
    files.put("proc/pressure/cpu", "some avg10=1.00 avg60=2.00 avg300=3.00 total=456\nfull avg10=0.00 total=9\n");
    files.put("proc/pressure/io", "full avg10=0.00 avg60=0.00 avg300=0.00 total=9\nsome avg10=0.00 total=12\n");
    files.put("proc/pressure/memory", "some avg10=0.00\n");
    const HostRow row = files.read();
    BOOST_TEST(row.cpu_pressure_ns == 456'000);
    BOOST_TEST(row.io_pressure_ns == 12'000);
    BOOST_TEST(row.memory_pressure_ns == no_stamp);
}

BOOST_AUTO_TEST_CASE(what_is_not_there_is_no_stamp_and_what_the_system_always_says_is_there) {
    const Files files;
    const HostRow row = files.read();
    for (const std::int64_t value : {row.busy_ns, row.steal_ns, row.throttled_ns, row.cpu_pressure_ns,
                                     row.io_pressure_ns, row.memory_pressure_ns, row.resident_bytes})
        BOOST_TEST(value == no_stamp);
    BOOST_TEST(row.own_cpu_ns > 0);
    BOOST_TEST(row.major_faults >= 0);
    BOOST_TEST(row.involuntary_switches >= 0);
    files.put("proc/self/statm", "1000 20 3 4 5 6 7\n");
    BOOST_TEST(files.read().resident_bytes == 20 * ::sysconf(_SC_PAGESIZE));
}

BOOST_AUTO_TEST_CASE(this_machine_counts_its_own_work) {
    HostCounters counters;
    const HostRow before = counters.read(1);
    volatile double sum = 0;
    HostRow after = before;
    while (after.own_cpu_ns - before.own_cpu_ns < 40 * ms) {
        for (int i = 0; i < 100'000; ++i)
            sum = sum + i;
        after = counters.read(2);
    }
    BOOST_REQUIRE(after.busy_ns != no_stamp);   // Linux always has /proc/stat and statm
    BOOST_TEST(after.busy_ns >= before.busy_ns);
    BOOST_TEST(after.resident_bytes > 0);
    BOOST_TEST(after.resident_bytes < std::int64_t{1} << 40);
}

BOOST_AUTO_TEST_CASE(files_are_closed_with_the_counters_and_in_child_programs) {
    const auto open_files = [] {
        std::vector<int> open;
        for (int file = 0; file < 1024; ++file)
            if (const int flags = ::fcntl(file, F_GETFD); flags >= 0)
                open.push_back(flags);
        return open;
    };
    const std::vector<int> before = open_files();
    {
        const Files files;
        files.put("proc/stat", "cpu0 1 2 3 4\n");
        HostCounters counters{files.path(), {0}}, moved = std::move(counters);
        const std::vector<int> during = open_files();
        BOOST_TEST(during.size() == before.size() + 1);
        BOOST_TEST(std::ranges::count(during, FD_CLOEXEC) == std::ranges::count(before, FD_CLOEXEC) + 1);
        BOOST_TEST(moved.read(0).busy_ns != no_stamp);
    }
    BOOST_TEST(open_files() == before, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(hostile_files_yield_times_or_no_stamp) {
    const Files files;
    const std::array<std::pair<std::string, std::string>, 8> honest{{
        {"proc/stat", "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 8 9 10\nintr 1\n"},
        {"proc/self/statm", "1000 20 3 4 5 6 7\n"},
        {"proc/self/cgroup", "3:cpu:/x\n0::/a/b\n"},
        {"proc/pressure/cpu", "some avg10=1.00 avg60=2.00 avg300=3.00 total=456\n"},
        {"proc/pressure/io", "some avg10=1.00 avg60=2.00 avg300=3.00 total=456\n"},
        {"proc/pressure/memory", "some avg10=1.00 avg60=2.00 avg300=3.00 total=456\n"},
        {"sys/fs/cgroup/a/cpu.stat", "usage_usec 5\nthrottled_usec 300\n"},
        {"sys/fs/cgroup/a/cpu.max", "50000 100000\n"},
    }};
    std::mt19937 random{11};
    const std::string letters = "0123456789999999 \n\t.-+:/=cputoalsme\0\xff";
    for (int round = 0; round < 1500; ++round) {
        for (const auto& [name, text] : honest) {
            std::string bytes = text;
            for (std::size_t changes = random() % 4; changes > 0; --changes) {
                const std::size_t at = random() % (bytes.size() + 1);
                switch (random() % 4) {
                case 0: bytes.resize(at); break;
                case 1: bytes.insert(at, random() % 40, letters[random() % letters.size()]); break;
                case 2: bytes.insert(at, bytes.substr(at / 2)); break;
                default:
                    for (char& byte : bytes)
                        if (random() % 8 == 0)
                            byte = static_cast<char>(random());
                }
            }
            files.put(name, bytes);
        }
        const HostRow row = files.read();
        for (const std::int64_t value :
             {row.own_cpu_ns, row.busy_ns, row.steal_ns, row.throttled_ns, row.cpu_pressure_ns, row.io_pressure_ns,
              row.memory_pressure_ns, row.resident_bytes})
            BOOST_REQUIRE(value == no_stamp || value >= 0);
        const auto cores = cgroup_cores(files.path());
        BOOST_REQUIRE((!cores || *cores > 0));
        BOOST_REQUIRE(host_sources(files.path()).size() == 6);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
