#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <drawpoint/bench/suite/task.hpp>
#include <drawpoint/pipeline/loader/core/batch_slots.hpp>
#include <drawpoint/pipeline/loader/core/loader_options.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>

namespace drawpoint::bench {

/// What a row of a loader does besides drawing.
struct LoaderRow {
    std::function<void(Batch&)> step = nullptr;   ///< called for each batch, as a training step would be
    bool checks_output = true;                    ///< whether it should deliver the same samples as other rows
};

/// A benchmark as data: named rows that do the same work in different ways. All are compared with the first one that is
/// measured. Every turn of a row is a process of its own, so rows share neither heap nor threads, and the luck of a
/// memory layout averages away. The processes of a round exist at the same time, one running while the others wait: the
/// machine's memory must hold all of them, and they must not lock the same file. The add_…() functions return *this,
/// and throw std::invalid_argument for a name that is empty, used twice, or more than one line.
class Suite {
public:
    explicit Suite(std::string name) : name_{std::move(name)} {}

    /// An option of the suite's own, e.g. "--data": takes `--data VALUE` or `--data=VALUE` out of the command line, and
    /// returns the value; empty: it is not given; the last one counts. `help` is what `--help` says of it. To be called
    /// before bench::main(), which takes the rest. Throws std::invalid_argument if the value is missing.
    std::string take_option(int& argc, char** argv, const std::string& name, const std::string& help);

    using MakeTask = std::function<std::unique_ptr<Task>()>;
    /// `make` is called in the process that measures the row.
    Suite& add_task(std::string name, MakeTask make);

    /// A function; `items`: how many it processes, for the rate. `digest`: called after a run; a number that is the
    /// same for the same output, to check that rows agree. `function` must keep its result from being optimised away.
    Suite& add_function(std::string name, std::function<void()> function, std::uint64_t items = 0,
                        std::function<std::uint64_t()> digest = nullptr);

    /// A command line, run as make_command() does. Its output is discarded; it must end with exit code 0.
    Suite& add_command(std::string name, const std::string& line);

    /// Passes over a data set through a DataLoader. A run is a pass over epoch 1, before which nothing is prefetched;
    /// the run that warms up is over epoch 0. It also measures the time to the first batch, the other draws, and each
    /// stage, sample by sample, so that a stage is compared on the same samples: all, or every n-th of more than
    /// 16,384, and not of a source that fills runs. Rows that deliver the same samples in whatever order and batches
    /// have the same digest (not with LoaderOptions::collate). The source and the sampler must live until bench::main()
    /// has returned. What the loader's constructor or a pass throws is the reason why the row is not run.
    Suite& add_loader(std::string name, const SampleSource& source, const Sampler& sampler,
                      const LoaderOptions& options, LoaderRow row = {});
    Suite& add_loader(std::string, const SampleSource&&, const Sampler&, const LoaderOptions&, LoaderRow = {}) = delete;
    Suite& add_loader(std::string, const SampleSource&, const Sampler&&, const LoaderOptions&, LoaderRow = {}) = delete;

    struct Row {
        std::string name;
        MakeTask make;
    };
    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    [[nodiscard]] const std::vector<Row>& rows() const noexcept { return rows_; }
    /// The suite's own options: name and help.
    [[nodiscard]] const std::vector<std::pair<std::string, std::string>>& options() const noexcept { return options_; }

private:
    std::string name_;
    std::vector<Row> rows_;
    std::vector<std::pair<std::string, std::string>> options_;
};

/// Whether what includes this header is compiled with optimisation.
#ifdef __OPTIMIZE__
constexpr bool is_optimised = true;
#else
constexpr bool is_optimised = false;
#endif

/// The main() of a suite's program: measures its rows in rounds, prints the table, and writes what is asked for;
/// `--help` lists the options. For each turn it starts the program again, with the same arguments and a few more, so
/// main() must add the same rows every time, and must not do anything that should happen only once. `argv[0]` is
/// ignored. Remove arguments of your own first: options with Suite::take_option(), fixed leading words by calling
/// main(suite, argc - 1, argv + 1). To be called before other threads are started, so that Ctrl-C reaches it. Returns
/// the exit status: 0; 1 if a row cannot be run, outputs differ, or a file cannot be written; 2 for a wrong option; 130
/// if interrupted.
[[nodiscard]] int main(const Suite&, int argc, char** argv, bool optimised = is_optimised);

}   // namespace drawpoint::bench
