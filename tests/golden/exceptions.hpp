#pragma once

#include <exception>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <system_error>
#include <typeinfo>

#include <drawpoint/loop/cancel.hpp>

#include "golden/golden_files.hpp"

/// Maps exceptions that users of the original throw to those that users of this loop throw; one table for all tests.
namespace golden {

struct TwoArgs : std::runtime_error {
    TwoArgs(const std::string& first, int second_argument) : std::runtime_error{first}, second{second_argument} {}
    int second;
};
struct OwnText : std::exception {   // belongs to no standard family and has a text of its own
    explicit OwnText(std::string own) : text{std::move(own)} {}
    [[nodiscard]] const char* what() const noexcept override { return text.c_str(); }
    std::string text;
};

/// A recorded exception: "Name" or "Name(arguments)", with arguments as in JSON.
struct Thrown {
    std::string name;
    Json arguments = Json::array();

    /// The first argument as Python prints it; empty if there is none.
    [[nodiscard]] std::string text() const {
        if (arguments.empty())
            return "";
        return arguments[0].is_string() ? arguments[0].get<std::string>() : arguments[0].dump();
    }
    [[nodiscard]] bool is_cancel() const { return name.starts_with("Cancel"); }
};

inline Thrown thrown_in(const std::string& recorded) {
    const std::size_t open = recorded.find('(');
    if (open == std::string::npos)
        return {.name = recorded};
    return {.name = recorded.substr(0, open),
            .arguments = Json::parse("[" + recorded.substr(open + 1, recorded.rfind(')') - open - 1) + "]")};
}

/// A function that throws our counterpart of a recorded exception. Throws std::runtime_error if there is none.
inline std::function<void()> throwing(const std::string& recorded) {
    using namespace drawpoint;
    struct Ours {
        std::size_t arguments;   // number of arguments that it needs
        std::function<void(const Thrown&)> act;
    };
    static const std::map<std::string, Ours> table{
        {"CancelFitException", {0, [](auto&) { throw CancelFit{}; }}},
        {"CancelEpochException", {0, [](auto&) { throw CancelEpoch{}; }}},
        {"CancelTrainException", {0, [](auto&) { throw CancelTrain{}; }}},
        {"CancelValidException", {0, [](auto&) { throw CancelValid{}; }}},
        {"CancelBatchException", {0, [](auto&) { throw CancelBatch{}; }}},
        {"CancelStepException", {0, [](auto&) { throw CancelStep{}; }}},
        {"CancelBackwardException", {0, [](auto&) { throw CancelBackward{}; }}},
        {"ValueError", {0, [](const Thrown& it) { throw std::invalid_argument{it.text()}; }}},
        {"KeyError", {0, [](const Thrown& it) { throw std::out_of_range{it.text()}; }}},
        {"RuntimeError", {0, [](const Thrown& it) { throw std::runtime_error{it.text()}; }}},
        {"OSError",
         {2,
          [](const Thrown& it) {
              throw std::system_error{it.arguments[0].get<int>(), std::generic_category(), it.arguments[1]};
          }}},
        {"TwoArgs", {2, [](const Thrown& it) { throw TwoArgs{it.text(), it.arguments[1].get<int>()}; }}},
        {"NoSuper", {1, [](const Thrown& it) { throw OwnText{it.text()}; }}},
        {"StopIteration", {0, [](const Thrown& it) { throw std::length_error{it.text()}; }}},
        {"IndexError", {0, [](const Thrown& it) { throw std::range_error{it.text()}; }}},
        {"AssertionError", {0, [](const Thrown& it) { throw std::logic_error{it.text()}; }}},
    };
    const Thrown one = thrown_in(recorded);
    const auto found = table.find(one.name);
    if (found == table.end() || one.arguments.size() < found->second.arguments)
        throw std::runtime_error("no exception of ours stands for " + recorded);
    return [act = found->second.act, one] { act(one); };
}

/// The exception that left a fit: the original's name of its type, and its text.
struct Escaped {
    std::string type, text;
    bool operator==(const Escaped&) const = default;
};

inline Escaped escaped_from(const std::exception_ptr& error) {
    using namespace drawpoint;
    static const std::map<std::string, std::string> types{{typeid(CancelFit).name(), "CancelFitException"},
                                                          {typeid(CancelEpoch).name(), "CancelEpochException"},
                                                          {typeid(CancelTrain).name(), "CancelTrainException"},
                                                          {typeid(CancelValid).name(), "CancelValidException"},
                                                          {typeid(CancelBatch).name(), "CancelBatchException"},
                                                          {typeid(CancelStep).name(), "CancelStepException"},
                                                          {typeid(CancelBackward).name(), "CancelBackwardException"},
                                                          {typeid(std::invalid_argument).name(), "ValueError"},
                                                          {typeid(std::out_of_range).name(), "KeyError"},
                                                          {typeid(std::runtime_error).name(), "RuntimeError"},
                                                          {typeid(std::system_error).name(), "OSError"},
                                                          {typeid(TwoArgs).name(), "TwoArgs"},
                                                          {typeid(OwnText).name(), "NoSuper"},
                                                          {typeid(std::length_error).name(), "StopIteration"},
                                                          {typeid(std::range_error).name(), "IndexError"},
                                                          {typeid(std::logic_error).name(), "AssertionError"}};
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& thrown) {
        return {types.at(typeid(thrown).name()), thrown.what()};
    }
}

}   // namespace golden
