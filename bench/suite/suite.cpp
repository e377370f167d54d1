#include <drawpoint/bench/suite/suite.hpp>

#include <algorithm>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "bench/experiment/process.hpp"
#include "bench/suite/loader_task.hpp"
#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint::bench {

namespace {

class FunctionTask final : public Task {
public:
    FunctionTask(std::function<void()> function, std::uint64_t items, std::function<std::uint64_t()> digest)
        : function_{std::move(function)}, items_{items}, digest_{std::move(digest)} {}
    void run(std::size_t) override { function_(); }
    std::uint64_t items() const noexcept override { return items_; }
    std::optional<std::uint64_t> digest() override {
        if (!digest_)
            return std::nullopt;
        function_();
        return digest_();
    }

private:
    std::function<void()> function_;
    std::uint64_t items_;
    std::function<std::uint64_t()> digest_;
};

class CommandTask final : public Task {
public:
    CommandTask(const std::string& name, const std::string& line) : process_{name, line} { process_.stay_in_group(); }
    void run(std::size_t) override { (void)process_.run(false); }

private:
    Process process_;
};

}   // namespace

std::string Suite::take_option(int& argc, char** argv, const std::string& name, const std::string& help) {
    options_.emplace_back(name, help);
    std::string value;
    int kept = std::min(argc, 1);
    for (int i = kept; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == name && i + 1 == argc)
            throw std::invalid_argument{fmt::format("{} needs a value", name)};
        if (word == name)
            value = argv[++i];
        else if (word.starts_with(name + "="))
            value = word.substr(name.size() + 1);
        else
            argv[kept++] = argv[i];
    }
    argc = kept;
    return value;
}

Suite& Suite::add_task(std::string name, MakeTask make) {
    if (name.empty() || printable(name) != name)
        throw std::invalid_argument{fmt::format("a row's name must be one line, got '{}'", printable(name))};
    if (std::ranges::find(rows_, name, &Row::name) != rows_.end())
        throw std::invalid_argument{fmt::format("two rows are named {}", name)};
    rows_.push_back({std::move(name), std::move(make)});
    return *this;
}

Suite& Suite::add_function(std::string name, std::function<void()> function, std::uint64_t items,
                           std::function<std::uint64_t()> digest) {
    return add_task(std::move(name), [function = std::move(function), items, digest = std::move(digest)] {
        return std::make_unique<FunctionTask>(function, items, digest);
    });
}

Suite& Suite::add_command(std::string name, const std::string& line) {
    if (line.find_first_not_of(" \t") == line.npos)
        throw std::invalid_argument{fmt::format("row {}: the command is empty", name)};
    return add_task(name, [name, line] { return std::make_unique<CommandTask>(name, line); });
}

Suite& Suite::add_loader(std::string name, const SampleSource& source, const Sampler& sampler,
                         const LoaderOptions& options, LoaderRow row) {
    return add_task(std::move(name), [&source, &sampler, options, row = std::move(row)] {
        return make_loader_task(source, sampler, options, row);
    });
}

}   // namespace drawpoint::bench
