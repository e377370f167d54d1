#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <string>

#include <drawpoint/instrumentation/host/host.hpp>

#include "tests/support/temporary_folder.hpp"

namespace {

using namespace drawpoint;

struct Files : test::TemporaryFolder {
    void put(const std::string& name, std::string_view text) const {
        std::filesystem::create_directories((*this / name).parent_path());
        test::put_bytes(*this / name, text);
    }
};

BOOST_AUTO_TEST_SUITE(host)

BOOST_AUTO_TEST_CASE(the_least_quota_from_the_cgroup_upwards_counts) {
    const Files files;
    BOOST_TEST(!cgroup_cores(files.path()));
    files.put("proc/self/cgroup", "0::/a/b\n");
    BOOST_TEST(!cgroup_cores(files.path()));
    files.put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    BOOST_TEST(!cgroup_cores(files.path()));
    files.put("sys/fs/cgroup/a/b/cpu.max", "350000 100000\n");
    BOOST_TEST(cgroup_cores(files.path()).value() == 3.5);
    files.put("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    BOOST_TEST(cgroup_cores(files.path()).value() == 0.5);
    files.put("sys/fs/cgroup/cpu.max", "100000 100000\n");
    BOOST_TEST(cgroup_cores(files.path()).value() == 0.5);
    files.put("sys/fs/cgroup/a/cpu.max", "50000 0\n");
    BOOST_TEST(cgroup_cores(files.path()).value() == 1);
}

BOOST_AUTO_TEST_CASE(quotas_of_version_1_count_where_version_2_has_none) {
    const Files files;
    files.put("proc/self/cgroup", "9:name=systemd:/x\n2:cpuacct,cpu:/a\n0::/\n");
    files.put("sys/fs/cgroup/cpuacct,cpu/a/cpu.cfs_quota_us", "-1\n");
    files.put("sys/fs/cgroup/cpuacct,cpu/a/cpu.cfs_period_us", "100000\n");
    BOOST_TEST(!cgroup_cores(files.path()));
    files.put("sys/fs/cgroup/cpuacct,cpu/a/cpu.cfs_quota_us", "150000\n");
    BOOST_TEST(cgroup_cores(files.path()).value() == 1.5);
    files.put("sys/fs/cgroup/unified/cpu.max", "100000 100000\n");
    BOOST_TEST(cgroup_cores(files.path()).value() == 1);
}

BOOST_AUTO_TEST_CASE(a_cgroup_outside_the_namespace_is_looked_for_at_its_top) {
    const Files files;
    files.put("sys/fs/cgroup/cpu.max", "200000 100000\n");
    files.put("elsewhere/cpu.max", "100000 100000\n");
    for (const char* path : {"0::/", "0::/../../../elsewhere", "0::/host/only", "0::"}) {
        files.put("proc/self/cgroup", path);
        BOOST_TEST(cgroup_cores(files.path()).value() == 2, path);
    }
}

BOOST_AUTO_TEST_CASE(usable_cores_are_what_affinity_and_quota_both_grant) {
    BOOST_TEST(affinity_cores() >= 1);
    const auto quota = cgroup_cores();
    const auto affinity = static_cast<double>(affinity_cores());
    BOOST_TEST(usable_cores() == (quota ? std::min(*quota, affinity) : affinity));
}

BOOST_AUTO_TEST_CASE(the_schedulers_numbers_are_told_where_they_can_be_read) {
    const Files files;
    BOOST_TEST(!scheduler_number("base_slice_ns", files.path()).has_value());
    files.put("sys/kernel/debug/sched/base_slice_ns", "2800000\n");
    BOOST_TEST(scheduler_number("base_slice_ns", files.path()).value() == 2'800'000);
    BOOST_TEST(kernel_tick_ns() > 0);
}

BOOST_AUTO_TEST_CASE(a_source_that_is_missing_says_what_that_costs) {
    const Files files;
    const auto source = [&](std::string_view name) {
        const auto sources = host_sources(files.path());
        return *std::ranges::find(sources, name, &HostSource::name);
    };
    for (const char* name : {"load", "steal", "pressure", "run queue", "process"}) {
        BOOST_TEST(!source(name).available, name);
        BOOST_TEST(!source(name).costs.empty(), name);
    }
    BOOST_TEST(!source("throttling").available);
    BOOST_TEST(source("throttling").costs.empty());   // nothing is missed if there is no limit
    files.put("proc/self/cgroup", "0::/\n");
    files.put("sys/fs/cgroup/cpu.max", "100000 100000\n");
    BOOST_TEST(!source("throttling").costs.empty());

    std::string stat;
    for (int core = 0; core < 100; ++core)
        stat += "cpu" + std::to_string(core) + " 1 2 3 4 5 6 7 8 9 10\n";
    files.put("proc/stat", stat);
    files.put("proc/thread-self/schedstat", "1 2 3\n");
    files.put("proc/self/statm", "1 2 3\n");
    files.put("sys/fs/cgroup/cpu.stat", "throttled_usec 1\n");
    for (const char* name : {"cpu", "io", "memory"})
        files.put(std::string{"proc/pressure/"} + name, "some avg10=0.00 total=1\n");
    for (const HostSource& each : host_sources(files.path())) {
        BOOST_TEST(each.available, each.name);
        BOOST_TEST(each.costs.empty(), each.name);
        BOOST_TEST(!each.found.empty(), each.name);
    }
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
