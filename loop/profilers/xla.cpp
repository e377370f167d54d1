#include <drawpoint/loop/profilers/xla.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <limits>
#include <stdexcept>

#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/host/detail/serve_process.hpp>

namespace drawpoint {
namespace {

constexpr std::array recorded{std::string_view{"training_step"}, std::string_view{"backward"},
                              std::string_view{"validation_step"}, std::string_view{"test_step"},
                              std::string_view{"predict_step"}};
constexpr std::size_t first_numbered = 2;
constexpr std::chrono::seconds longest_answer{6};   // to captures that go on

/// Position in `recorded` of the hook in an action's name, e.g. "[Strategy]SingleDeviceStrategy.training_step".
std::size_t hook_of(std::string_view action) noexcept {
    const std::string_view hook = action.substr(action.rfind('.') + 1);   // npos + 1 is 0: the whole name
    return static_cast<std::size_t>(std::ranges::find(recorded, hook) - recorded.begin());
}

}   // namespace

XlaProfiler::XlaProfiler(Recorder& recorder, std::optional<int> port) : recorder_{&recorder} {
    if (!port)
        return;
    const std::string what = "XlaProfiler: port " + std::to_string(*port);
    if (*port < 1 || *port > std::numeric_limits<std::uint16_t>::max())
        throw std::invalid_argument{what + " is none"};
    if (recorder.state().file.empty())
        throw std::invalid_argument{what +
                                    ": what is captured is cut out of a recording, and this recorder has no file"};
    const auto unix_ns =   // which tells what of the recording is now
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch());
    recorder.set_fact(facts::unix_offset_ns, std::to_string(unix_ns.count() - recorder.now_ns()));
    const std::string text = std::to_string(*port);
    service_ = std::make_unique<ServeProcess>("captures on port " + text,
                                              std::vector<std::string>{"--capture=" + text, "--listen=127.0.0.1"},
                                              longest_answer);
}

XlaProfiler::~XlaProfiler() = default;

void XlaProfiler::start(std::string_view action) {
    const std::size_t hook = hook_of(action);
    if (hook == recorded.size())
        return;
    std::string name{action};
    if (hook >= first_numbered) {
        const auto steps = steps_.try_emplace(name, 0).first;
        name += "#" + std::to_string(++steps->second);
    }
    open_.push_back({std::string{action}, recorder_->begin_operator({.name = recorder_->add_name(name)})});
}

void XlaProfiler::stop(std::string_view action) {
    const auto last = std::ranges::find(open_.rbegin(), open_.rend(), action, &Open::action);
    if (last == open_.rend())
        return;
    // Regions must nest: one that was never stopped ends with the one around it.
    for (auto left = std::distance(open_.rbegin(), last) + 1; left > 0; --left) {
        recorder_->end_operator(open_.back().ticket);
        open_.pop_back();
    }
}

}   // namespace drawpoint
