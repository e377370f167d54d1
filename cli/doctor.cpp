#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <nlohmann/json.hpp>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/machine.hpp"
#include "cli/command_line.hpp"
#include "cli/options.hpp"
#include "cli/report_output.hpp"
#include <drawpoint/instrumentation/clock.hpp>
#include <drawpoint/instrumentation/host/host.hpp>
#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>
#include <drawpoint/pipeline/loader/reading/read_backend.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>

namespace drawpoint::cli {
namespace {

struct Finding {
    std::string about;   ///< "clock"
    std::string found;   ///< what there is
    std::string costs;   ///< what its lack costs; empty: nothing is missing
};

template <class C>
double ns_per_reading(const C& clock) {
    constexpr int rounds = 5, readings = 20'000;
    double best = 1e9;
    for (int round = 0; round < rounds; ++round) {
        const std::int64_t begin = SteadyClock{}.now_ns();
        std::int64_t last = 0;
        for (int i = 0; i < readings; ++i)
            last = std::max(last, clock.now_ns());
        best = std::min(best, static_cast<double>(SteadyClock{}.now_ns() - begin + (last == 0 ? 1 : 0)) / readings);
    }
    return best;
}

Finding cores() {
    const auto hardware = static_cast<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()));
    const std::int64_t affinity = affinity_cores(), usable = whole_usable_cores();
    const auto quota = cgroup_cores();
    Finding finding{.about = "cores",
                    .found = fmt::format("{} usable, {} by affinity, {} online", usable, affinity, hardware)};
    if (quota)
        finding.found += fmt::format(", cgroup grants {:.2f}", *quota);
    if (usable == 1)
        finding.costs = "loading and training take turns on one core";
    else if (quota && *quota < static_cast<double>(affinity))
        finding.costs = "the cgroup stops all threads for the rest of a period once its time is used up";
    return finding;
}

/// What recordings say of the machine beside the run, as one finding.
Finding host() {
    Finding finding{.about = "host", .found = "", .costs = ""};
    const auto append = [](std::string& text, const std::string& more) {
        if (!more.empty())
            text += (text.empty() ? "" : ", ") + more;
    };
    std::string missing;
    for (const HostSource& source : host_sources()) {
        append(source.available ? finding.found : missing, source.name);
        append(finding.costs, source.costs);
    }
    finding.found = (finding.found.empty() ? "nothing" : finding.found) + " recorded";
    if (!missing.empty())
        finding.found += ", not there: " + missing;
    return finding;
}

Finding clock() {
    if (TscClock::available())
        return {"clock", fmt::format("tsc, {:.1f} ns a reading", ns_per_reading(AnyClock{})), ""};
    return {"clock", fmt::format("steady, {:.1f} ns a reading", ns_per_reading(SteadyClock{})),
            "no time-stamp counter that is constant and that the kernel relies on: each stamp costs about 20 ns more"};
}

Finding recording() {
    Recorder recorder;
    return {"recording", fmt::format("{:.1f} ns an event", recorder.state().ns_per_event), ""};
}

Finding perf_counters() {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    const long file = syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0UL);
    if (file >= 0) {
        close(static_cast<int>(file));
        return {"counters", "hardware counters can be read", ""};
    }
    const int error = errno;
    std::ifstream paranoid{"/proc/sys/kernel/perf_event_paranoid"};
    std::string level = "unknown";
    paranoid >> level;
    return {"counters", fmt::format("no hardware counters ({}, perf_event_paranoid {})", std::strerror(error), level),
            "instructions and cache misses cannot be told; times are not affected"};
}

Finding libtorch(const TorchBuild& build) {
    if (build.built.empty())
        return {"libtorch", "none: this build is without", "profile and tune need it"};
    const std::string kind = build.accelerator.empty() ? "for the CPU alone" : "for " + build.accelerator;
    if (build.loaded.empty() || build.loaded == build.built)
        return {"libtorch", fmt::format("{}, {}", build.built, kind), ""};
    return {
        "libtorch", fmt::format("{}, {}", build.loaded, kind),
        fmt::format("this program was built with {}: a device may fail in ways that nobody has tested", build.built)};
}

Finding threads() {
    if (std::string_view{DRAWPOINT_TBB_VERSION}.empty())
        return {"threads", "plain threads", "built without oneTBB: TBB code inside a sample may use every core"};
    return {"threads", fmt::format("each worker in a oneTBB {} arena of its own", DRAWPOINT_TBB_VERSION), ""};
}

Finding reading() {
    const ReadBackend backend = read_backend();
    return {"reading", fmt::format("{} ({}) where reads have to wait, else on the workers", backend.name, backend.why),
            backend.io_uring ? "" : "each read ahead of the workers takes a thread while it is under way"};
}

Finding huge_pages() {
    std::ifstream file{"/sys/kernel/mm/transparent_hugepage/enabled"};
    std::string line;
    std::getline(file, line);
    const bool on = line.find("[always]") != line.npos || line.find("[madvise]") != line.npos;
    return {"pages", on ? "transparent huge pages: " + line : "no transparent huge pages",
            on ? "" : "the first touch of batch memory takes a fault for every 4 KiB"};
}

Finding gpu(const TorchBuild& build) {
    const bool is_there = std::filesystem::exists("/dev/nvidiactl") || std::filesystem::exists("/dev/kfd");
    const std::string on_cpu = "training runs on the CPU's cores, beside the workers";
    if (build.accelerator.empty())
        return {"gpu", is_there ? "a device is there, but this LibTorch is built for the CPU alone" : "none", on_cpu};
    const std::string found =
        fmt::format("{}, {} device{}", build.accelerator, build.devices, build.devices == 1 ? "" : "s");
    if (build.devices == 0)
        return {"gpu", found, "LibTorch finds no driver or no device: " + on_cpu};
    return {"gpu", found, build.pins_memory ? "" : "no pinned memory: the loop waits for every copy to the device"};
}

}   // namespace

int doctor(const Invocation& invocation) {
    CommandLine line{invocation,
                     "Says what this machine, build and environment offer, what is missing and what that costs."};
    OutputFlags flags{line.app(), false};
    if (!line.parse())
        return exit_ok;
    const OutputOptions output = flags.read();
    const Machine machine = this_machine();
    const TorchBuild build = torch_build();
    const std::array findings{cores(),         host(),    clock(),   recording(),  perf_counters(),
                              libtorch(build), threads(), reading(), huge_pages(), gpu(build)};

    nlohmann::ordered_json document =
        json_document("drawpoint.doctor/1", {.version = DRAWPOINT_VERSION, .command = invocation.line}, machine);
    document["findings"] = nlohmann::ordered_json::array();
    for (const Finding& finding : findings)
        document["findings"].push_back({{"about", finding.about},
                                        {"found", finding.found},
                                        {"costs", finding.costs.empty() ? nlohmann::ordered_json(nullptr)
                                                                        : nlohmann::ordered_json(finding.costs)}});
    std::string text = fmt::format("drawpoint {}, built by {}\n{:<11}{}, {}\n", DRAWPOINT_VERSION, machine.compiler,
                                   "machine", printable(machine.cpu), printable(machine.kernel));
    for (const Finding& finding : findings) {
        text += fmt::format("{:<11}{}\n", finding.about, printable(finding.found));
        if (!finding.costs.empty())
            text += fmt::format("{:<11}  {}\n", "", finding.costs);
    }
    std::string libraries;
    for (const auto& [name, version] : machine.libraries)
        libraries += fmt::format("{}{} {}", libraries.empty() ? "" : ", ", name, version);
    print_output(text + fmt::format("{:<11}{}\n", "libraries", libraries), document, output);
    return exit_ok;
}

}   // namespace drawpoint::cli
