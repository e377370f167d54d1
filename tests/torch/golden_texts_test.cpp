// Recorded texts of torch.profiler, those that need LibTorch.

#include <drawpoint/loop/torch/torch_profiler.hpp>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include <ATen/ops/exp.h>
#include <ATen/ops/ones.h>
#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/report/operators.hpp>

#include "golden/replays.hpp"
#include "golden/torch_texts.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace drawpoint;
using golden::Json;

/// The text of what a call throws, or "taken" if it throws nothing.
template <class Call>
std::string text_of(Call call) {
    try {
        call();
    } catch (const std::exception& error) {
        return error.what();
    }
    return "taken";
}

/// A profiler that has recorded one operator.
struct Recorded {
    explicit Recorded(TorchProfilerOptions options = {}) : profiler{recorder, std::move(options)} {
        profiler.start();
        (void)at::exp(at::ones({1}));
        profiler.stop();
    }
    test::TemporaryFolder folder;
    Recorder recorder;
    TorchProfiler profiler;
};

/// The options that a recorded text gives as a Python dict.
TorchProfilerOptions options_in(const std::string& dict) {
    TorchProfilerOptions options;
    static const std::regex entry{"'(\\w+)': True"};
    for (std::sregex_iterator at{dict.begin(), dict.end(), entry}; at != std::sregex_iterator{}; ++at) {
        const std::string name = (*at)[1];
        (name == "record_shapes"    ? options.record_shapes
         : name == "profile_memory" ? options.profile_memory
         : name == "with_stack"     ? options.with_stack
                                    : throw std::runtime_error("unknown option " + name)) = true;
    }
    return options;
}

/// Names of activities, formatted like a Python list.
std::string printed(const std::vector<ProfilerActivity>& activities) {
    std::string text;
    for (const ProfilerActivity one : activities)
        text += (text.empty() ? "'" : ", '") + std::string{name_of(one)} + "'";
    return "[" + text + "]";
}

/// The text with which these options are refused, or "taken".
std::string refusal(TorchProfilerOptions options) {
    return text_of([&] {
        Recorder recorder;
        const TorchProfiler profiler{recorder, std::move(options)};
    });
}

std::string before_start(const std::string& call) {
    const test::TemporaryFolder folder;
    Recorder recorder;
    TorchProfiler profiler{recorder};
    return text_of([&] {
        if (call == "key_averages")
            (void)profiler.key_averages();
        else if (call == "export_chrome_trace")
            profiler.export_chrome_trace(folder.path() / "trace.json");
        else if (call == "toggle_collection_dynamic")
            profiler.toggle_collection_dynamic(false, std::vector{ProfilerActivity::cpu});
        else
            throw std::runtime_error("unknown call " + call);
    });
}

/// Names of the files that the handler writes, with their times masked.
std::vector<std::string> handled_names() {
    std::vector<std::string> names;
    for (const bool use_gzip : {false, true}) {
        const test::TemporaryFolder folder;
        const Recorded run{{.on_trace_ready = tensorboard_trace_handler(folder.path(), "w1", use_gzip)}};
        for (const auto& entry : std::filesystem::directory_iterator{folder.path()})
            names.push_back(std::regex_replace(entry.path().filename().string(), std::regex{"\\d{10,}"}, "<time_ns>"));
    }
    return names;
}

void check(const std::string& id, const Json& one) {
    golden::check_keys(one, {"id", "raised", "message", "returned", "warnings"});
    const std::string message = one.value("message", "taken");
    const auto after = [&](const std::string& beginning) { return id.substr(beginning.size()); };
    if (id == "activities []") {
        BOOST_TEST(refusal({.activities = std::vector<ProfilerActivity>{}}) == message);
    } else if (id == "activities duplicate") {   // ours does not print the class name before the activity's
        const std::vector twice{ProfilerActivity::cpu, ProfilerActivity::cpu};
        BOOST_TEST(refusal({.activities = twice}) ==
                   std::regex_replace(message, std::regex{"ProfilerActivity\\."}, ""));
    } else if (id == "use_cuda True") {
        std::vector<std::string> warnings;
        const auto warn = [&](std::string_view text) { warnings.push_back("FutureWarning: " + std::string{text}); };
        BOOST_TEST(refusal({.use_cuda = true, .warn = warn}) == message);
        BOOST_TEST(warnings == one.at("warnings").get<std::vector<std::string>>(), boost::test_tools::per_element());
        BOOST_TEST(printed(supported_activities()) == one.at("returned").get<std::string>());
    } else if (id == "default activities on this CPU build") {
        BOOST_TEST(printed(supported_activities()) == one.at("returned").get<std::string>());
    } else if (id.ends_with(" before start")) {
        BOOST_TEST(before_start(id.substr(0, id.find(' '))) == message);
    } else if (id.starts_with("export_memory_timeline with ")) {
        Recorded run{options_in(after("export_memory_timeline with "))};
        BOOST_TEST(text_of([&] { run.profiler.export_memory_timeline(run.folder.path() / "m.json"); }) == message);
    } else if (id == "export_stacks without with_stack" || id == "export_stacks bad metric") {
        Recorded run;
        const char* metric = id.ends_with("metric") ? "no_such_metric" : "self_cpu_time_total";
        BOOST_TEST(text_of([&] { run.profiler.export_stacks(run.folder.path() / "s.txt", metric); }) == message);
    } else if (id.starts_with("table sort_by=")) {   // ours lists the existing columns
        Recorded run;
        const std::string column = after("table sort_by=").substr(0, after("table sort_by=").find(' '));
        const std::string ours = text_of([&] { (void)table(run.profiler.key_averages(), {.sort_by = column}); });
        BOOST_TEST((ours == "taken") == !one.contains("raised"), ours);
        // the original refuses this; ours may be exported any number of times
    } else if (id == "export_chrome_trace twice") {
        Recorded run;
        for (const char* file : {"a.json", "b.json"})
            BOOST_TEST(text_of([&] { run.profiler.export_chrome_trace(run.folder.path() / file); }) == "taken");
    } else if (id == "tensorboard_trace_handler unwritable dir") {
        const std::string beginning = "Can't create directory: ";
        BOOST_TEST_REQUIRE(message.starts_with(beginning));
        Recorded run;
        const auto handler = tensorboard_trace_handler(message.substr(beginning.size()));
        BOOST_TEST(text_of([&] { handler(run.profiler); }) == message);
    } else if (id == "tensorboard_trace_handler file names") {
        BOOST_TEST(handled_names() == one.at("returned").get<std::vector<std::string>>(),
                   boost::test_tools::per_element());
    } else {
        throw std::runtime_error("unknown text");
    }
}

}   // namespace

BOOST_AUTO_TEST_SUITE(golden_texts)

BOOST_AUTO_TEST_CASE(the_original_texts_of_the_profiler_name_what_is_wrong) {
    golden::Replays replays{"golden_texts"};
    for (const auto& [path, document] : golden::documents("g5_torch_schedule", "texts"))
        for (const Json& one : document.at("cases"))
            if (const std::string id = one.value("id", ""); golden::is_of_torch_profiler(id))
                replays(path, id, [&] { check(id, one); });
}

BOOST_AUTO_TEST_SUITE_END()
