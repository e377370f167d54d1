// The C++ contenders' end of the protocol of comparison/child.hpp; contenders/serving.py is the same for Python.
#include "serve.hpp"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <malloc.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "loader.hpp"

namespace drawpoint::bench {
namespace {

using nlohmann::json;

std::int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }

std::unique_ptr<Loader> make(const Workload& workload) {
    const std::string& name = workload.contender;
    if (name == "drawpoint")
        return workload.kind == "consumer" ? make_drawpoint_consumer(workload) : make_drawpoint(workload);
    if (name == "decode-bound")
        return make_decode_bound(workload);
    if (name == "memcpy-bound")
        return make_memcpy_bound(workload);
    if (name == "threads-bound")
        return make_threads_bound(workload);
#ifdef DRAWPOINT_BENCH_TORCH
    if (name.starts_with("torch-data"))
        return make_torch_data(workload);
#endif
    throw std::runtime_error{"this build has no LibTorch"};
}

void write_line(const json& line) {
    const std::string text = line.dump() + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

json run_round(Loader& contender, std::size_t epoch, std::size_t passes) {
    std::int64_t first_batch = 0;
    std::uint64_t items = 0, batches = 0;
    const std::int64_t begin = now_ns();
    const auto see = [&](const BatchView& batch) {
        if (first_batch == 0)
            first_batch = now_ns() - begin;
        items += batch.targets.size();
        ++batches;
        return true;
    };
    for (std::size_t p = 0; p < passes; ++p)
        contender.pass(epoch + p, p + 1 < passes, see);
    Loader::Times times = contender.take_times();
    if (times.wall_ns == 0)
        times.wall_ns = now_ns() - begin;
    return {{"wall_ns", times.wall_ns},
            {"bound_ns", times.bound_ns},
            {"first_batch_ns", first_batch},
            {"items", items},
            {"batches", batches}};
}

/// Time to the first batch of a newly made loader, construction included.
json first_batch(const Workload& workload, std::size_t epoch) {
    const std::int64_t begin = now_ns();
    std::int64_t end = 0;
    const std::unique_ptr<Loader> contender = make(workload);
    contender->pass(epoch, false, [&](const BatchView&) {
        end = now_ns();
        return false;
    });
    return {{"wall_ns", end - begin}};
}

/// Sends the chosen batches of a pass: for each a line, then its values as bytes.
void send_batches(Loader& contender, const Workload& workload, std::size_t epoch,
                  const std::vector<std::size_t>& chosen) {
    std::size_t number = 0;
    contender.pass(epoch, false, [&](const BatchView& batch) {
        if (std::ranges::find(chosen, number++) != chosen.end()) {
            const std::size_t values = batch.data ? batch.targets.size() * workload.values() : 0;
            write_line({{"targets", std::vector<std::int64_t>(batch.targets.begin(), batch.targets.end())},
                        {"values", values}});
            std::fwrite(batch.data, sizeof(float), values, stdout);
            std::fflush(stdout);
        }
        return true;
    });
}

void answer(Loader& contender, const Workload& workload, const json& request) {
    const std::string what = request.at("do");
    if (what == "round")
        write_line(run_round(contender, request.at("epoch"), request.at("passes")));
    else if (what == "first_batch")
        write_line(first_batch(workload, request.at("epoch")));
    else
        send_batches(contender, workload, request.at("epoch"), request.at("batches"));
}

constexpr std::string_view serve_word = "--serve";

}   // namespace

bool is_child(int argc, char** argv) noexcept { return argc == 3 && argv[1] == serve_word; }

int serve(int, char** argv) {
    try {
        const auto workload = json::parse(argv[2]).get<Workload>();
        // freed batches stay in the heap, so their pages are not faulted in again
        if (workload.variant.ends_with("tuned")) {
            mallopt(M_MMAP_THRESHOLD, 1 << 30);
            mallopt(M_TRIM_THRESHOLD, INT_MAX);
        }
        std::unique_ptr<Loader> contender;
        try {
            contender = make(workload);
        } catch (const std::exception& error) {
            write_line({{"not_run", error.what()}});
            return 0;
        }
        write_line({{"settings", contender->describe()}});
        for (std::string line; std::getline(std::cin, line);) {
            try {
                answer(*contender, workload, json::parse(line));
            } catch (const std::exception& error) {
                write_line({{"error", error.what()}});
            }
        }
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "{}: {}\n", argv[2], error.what());
        return 1;
    }
}

}   // namespace drawpoint::bench
