#include "roster.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "child.hpp"

namespace drawpoint::bench {
namespace {

/// A Python loader. Its rates relative to PyTorch's, per workload, were published or measured once with a careful setup
/// (two workers, Debian 12, two cores); 0: it does not take part.
struct Peer {
    const char *contender, *variant, *environment, *script;
    bool same_filter;
    double jpeg, tiny, tensor, straggler;
    const char* order = "in";

    [[nodiscard]] double published(std::string_view kind) const {
        return kind == "jpeg"        ? jpeg
               : kind == "tiny"      ? tiny
               : kind == "tensor"    ? tensor
               : kind == "straggler" ? straggler
                                     : 0;
    }
};

constexpr Peer peers[] = {
    {"pytorch", "persistent", "torch", "torch_loader", true, 1, 1, 1, 1},
    {"pytorch", "fast", "torch", "torch_loader", false, 1.62, 0, 0, 0},
    {"pytorch", "unordered", "torch", "torch_loader", true, 0, 0, 0, 1.21, "out"},
    {"spdl", "batch", "spdl", "spdl_loader", false, 1.23, 1.49, 1.09, 1.11},
    {"spdl", "batch_fast", "spdl", "spdl_loader", false, 1.74, 0, 0, 0},
    {"tf-data", "fixed", "tensorflow", "tf_data", false, 2.32, 5.3, 9.06, 1.07},
    {"dali-cpu", "fused", "dali", "dali_cpu", false, 1.47, 0, 0, 0},
    {"dataloader-rs", "fast", "dataloader-rs", "dataloader_rs_loader", false, 2.07, 0, 0, 0},
    {"dataloader-rs", "items", "dataloader-rs", "dataloader_rs_loader", true, 0, 12.7, 6.5, 1.17},
    {"dataloader-rs", "getitems", "dataloader-rs", "dataloader_rs_loader", true, 0, 40, 0, 0},
    {"torchdata-nodes", "threads", "torch", "torchdata_nodes", true, 0.94, 1.97, 1.13, 1.07},
    {"grain", "threads", "grain", "grain_threads", true, 0.94, 0.89, 4.09, 1.19},
};

/// A contender written in C++, which this program serves itself.
struct Native {
    const char *contender, *variant;
    std::vector<std::string_view> kinds;
    bool is_bound = false;
};

const std::vector<Native>& natives() {
    static const std::vector<Native> all{
        {"torch-data", "as_shipped", {"jpeg", "tiny", "tensor", "straggler"}},
        {"torch-data", "tuned", {"jpeg", "tiny", "tensor"}},
        {"torch-data", "same_kernel", {"jpeg"}},
        {"torch-data", "same_kernel_tuned", {"jpeg"}},
        {"torch-data-float", "as_shipped", {"jpeg"}},
        {"torch-data-float", "tuned", {"jpeg"}},
        {"decode-bound", "libjpeg_turbo", {"jpeg"}, true},
        {"memcpy-bound", "one_thread", {"tensor"}, true},
        {"threads-bound", "no_batches", {"straggler"}, true},
    };
    return all;
}

constexpr std::string_view same_kernel = "same_kernel";
constexpr std::array both_decoders{"library", "own"};

/// The decoders for which a contender has a row each; "": the workload's own.
std::vector<std::string> decoders_of(const Native& native, const Workload& wish) {
    if (wish.jpeg_decoder.empty() && std::string_view{native.variant}.starts_with(same_kernel))
        return {both_decoders.begin(), both_decoders.end()};
    return {""};
}

Entry drawpoint_entry(Workload workload, const char* variant) {
    workload.contender = "drawpoint";
    workload.variant = variant;
    return {.workload = std::move(workload)};
}

/// Loops whose compute takes from a quarter to four times as long as producing a step's batch, for steps of 1 ms and of
/// 20 µs.
std::vector<Entry> consumers(const Workload& wish) {
    struct Form {
        const char* name;
        std::int64_t step_ns;
        std::size_t num_workers, prefetch_depth, steps;
    };
    constexpr std::array forms{Form{"wait_1ms", 1'000'000, 2, 4, 200}, Form{"busy_1ms", 1'000'000, 1, 4, 200},
                               Form{"busy_20us_depth_16", 20'000, 1, 16, 4'000},
                               Form{"busy_20us_depth_4", 20'000, 1, 4, 4'000}};
    std::vector<Entry> entries;
    for (const Form& form : forms)
        for (const double factor : {0.25, 0.5, 1.0, 2.0, 4.0}) {
            Entry entry = drawpoint_entry(wish, "");
            Workload& w = entry.workload;
            w.variant = fmt::format("{}_x{}", form.name, factor);
            w.batch_size = 16;
            w.items = w.batch_size * form.steps;
            w.num_workers = form.num_workers;
            w.prefetch_depth = form.prefetch_depth;
            w.compute_ns = static_cast<std::int64_t>(factor * static_cast<double>(form.step_ns));
            w.item_ns =
                form.step_ns * static_cast<std::int64_t>(w.num_workers) / static_cast<std::int64_t>(w.batch_size);
            entries.push_back(entry);
        }
    return entries;
}

std::vector<Entry> drawpoint_entries(const Workload& wish) {
    if (wish.kind == "consumer")
        return consumers(wish);
    std::vector<Entry> entries{drawpoint_entry(wish, wish.kind == "latency" ? "no_latency" : "as_shipped")};
    if (wish.jpeg_decoder.empty())
        entries.front().workload.jpeg_decoder = "auto";
    if (wish.kind == "latency")
        entries.push_back(drawpoint_entry(entries.front().workload, "latency_5ms"));
    if (wish.kind == "tiny")
        entries.push_back(drawpoint_entry(wish, "unrecorded"));
    if (wish.kind == "straggler") {
        entries.push_back(drawpoint_entry(wish, "out_of_order"));
        entries.back().workload.order = "out";
    }
    if (wish.kind == "jpeg" && wish.jpeg_decoder.empty())
        for (const char* decoder : both_decoders) {
            entries.push_back(drawpoint_entry(wish, decoder));
            entries.back().workload.jpeg_decoder = decoder;
        }
    return entries;
}

std::filesystem::path bench_folder() {
    const char* wish = std::getenv("DRAWPOINT_BENCH_DIR");
    return wish ? wish : DRAWPOINT_BENCH_DIR;
}

}   // namespace

const std::vector<std::string>& workload_kinds() {
    static const std::vector<std::string> kinds{"jpeg", "tiny", "tensor", "straggler", "latency", "consumer"};
    return kinds;
}

std::vector<std::string> contender_names() {
    std::vector<std::string> names{"drawpoint"};
    for (const Native& native : natives())
        names.emplace_back(native.contender);
    for (const Peer& peer : peers)
        names.emplace_back(peer.contender);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

std::vector<Entry> roster(const Workload& workload, const std::vector<std::string>& contenders) {
    const auto takes_part = [&](const char* name) {
        return contenders.empty() || std::ranges::find(contenders, name) != contenders.end();
    };
    std::vector<Entry> entries = drawpoint_entries(workload);
    Workload wish = workload;
    if (wish.jpeg_decoder.empty())
        wish.jpeg_decoder = "auto";
    for (const Native& native : natives())
        if (takes_part(native.contender) && std::ranges::find(native.kinds, wish.kind) != native.kinds.end())
            for (const std::string& decoder : decoders_of(native, workload)) {
                Entry entry{.workload = wish, .is_bound = native.is_bound};
                entry.workload.contender = native.contender;
                entry.workload.variant = native.variant;
                if (!decoder.empty()) {
                    entry.workload.jpeg_decoder = decoder;
                    entry.workload.variant.insert(same_kernel.size(), "_" + decoder);
                }
                entries.push_back(entry);
            }
    for (const Peer& peer : peers)
        if (takes_part(peer.contender) && peer.published(wish.kind) > 0) {
            Entry entry{.workload = wish,
                        .environment = peer.environment,
                        .script = peer.script,
                        .same_filter = peer.same_filter && wish.resize_filter == "antialias",
                        .published = peer.published(wish.kind)};
            entry.workload.contender = peer.contender;
            entry.workload.variant = peer.variant;
            entry.workload.order = peer.order;
            entries.push_back(entry);
        }
    return entries;
}

std::vector<std::string> command_of(const Entry& entry) {
    if (entry.script.empty())
        return {"/proc/self/exe", "--serve"};
    const std::filesystem::path bench = bench_folder(), installed = bench.parent_path() / ".deps/peers";
    const std::filesystem::path script = bench / "contenders" / (entry.script + ".py");
    const std::filesystem::path python = installed / entry.environment / "bin/python3";
    if (!std::filesystem::exists(script))
        throw NotRun{fmt::format("{} is not there (DRAWPOINT_BENCH_DIR says where bench/ is)", script.string())};
    std::ifstream reasons{installed / "REASONS.json"};
    const auto known = nlohmann::json::parse(reasons, nullptr, false);
    if (known.is_object() && known.contains(entry.environment) && known[entry.environment].is_string())
        throw NotRun{known[entry.environment].get<std::string>()};
    if (!std::filesystem::exists(python))
        throw NotRun{"run ./run bench peers"};
    return {python.string(), "-B", script.string()};
}

}   // namespace drawpoint::bench
