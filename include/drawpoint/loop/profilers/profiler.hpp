#pragma once

#include <filesystem>
#include <fstream>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace drawpoint {

class ProfiledAction;

/// The file of a profiler's report. Without `filename`, or without any folder, the report goes to `Profiler::output`,
/// on rank 0 only.
struct ProfilerFiles {
    std::filesystem::path dirpath;   ///< empty: the `log_dir` given at `setup`
    std::string filename;            ///< without stage, rank and extension
};

/// Times actions by name. The base class of all profilers with Lightning's interface, including users' own: override
/// `start` and `stop`, then `summary`. One thread at a time.
class Profiler {
public:
    explicit Profiler(ProfilerFiles files = {}) : files_{std::move(files)} {}
    Profiler(const Profiler&) = delete;
    Profiler& operator=(const Profiler&) = delete;
    virtual ~Profiler() = default;

    virtual void start(std::string_view action) = 0;
    virtual void stop(std::string_view action) = 0;

    /// Times the action until the end of the scope, also when an exception ends it: `const auto timed =
    /// profiler.profile("augment");`. Throws what `start` throws; then nothing is stopped, and an outer scope of the
    /// same name continues.
    [[nodiscard]] ProfiledAction profile(std::string_view action);

    /// The report as text; empty if there is none.
    [[nodiscard]] virtual std::string summary() { return {}; }

    /// Appends the summary, if there is one, to the file, or else prints it on rank 0 to `output()`; then calls
    /// `teardown`. Measurements are kept: a second call reports them again. Throws std::system_error naming the file.
    void describe();

    /// A stage ("fit", "validate", "test", "predict") begins on this rank.
    virtual void setup(std::string_view stage, int local_rank = 0, const std::filesystem::path& log_dir = {});
    /// Ends a stage; files are closed.
    virtual void teardown(std::string_view stage);

    /// Standard output unless set; must outlive the profiler.
    void set_output(std::ostream& stream) noexcept { output_ = &stream; }
    [[nodiscard]] std::ostream& output() const noexcept;

    [[nodiscard]] int local_rank() const noexcept { return local_rank_.value_or(0); }
    [[nodiscard]] const std::string& stage() const noexcept { return stage_; }
    [[nodiscard]] const std::filesystem::path& dirpath() const noexcept { return files_.dirpath; }
    /// The name of a file of this profiler, from `profile_file_name`.
    [[nodiscard]] std::string file_name(std::string_view action = {}, std::string_view extension = ".txt") const;

private:
    ProfilerFiles files_;
    std::string stage_;
    std::optional<int> local_rank_;
    std::ostream* output_ = nullptr;
    std::ofstream file_;
};

/// Joins the parts that are not empty to `STAGE-FILENAME-RANK-ACTION`, with an extension. Characters that file names
/// cannot contain (\ / : * ? " < > |, line ends, tabs) become "_", runs of "_" are merged, and outer blanks removed;
/// "profile" if nothing is left.
[[nodiscard]] std::string profile_file_name(std::string_view stage, std::string_view filename,
                                            std::optional<int> local_rank, std::string_view action,
                                            std::string_view extension);

/// An action being timed (`Profiler::profile`). If it was stopped by hand, the end of the scope does nothing.
class ProfiledAction {
public:
    ProfiledAction(Profiler& profiler, std::string_view action) : profiler_{&profiler}, action_{action} {
        profiler.start(action_);
    }
    ProfiledAction(const ProfiledAction&) = delete;
    ProfiledAction& operator=(const ProfiledAction&) = delete;
    ~ProfiledAction();
    [[nodiscard]] const std::string& action() const noexcept { return action_; }

private:
    Profiler* profiler_;
    std::string action_;
};

inline ProfiledAction Profiler::profile(std::string_view action) { return ProfiledAction{*this, action}; }

/// Times nothing: the default of code that accepts a profiler.
class PassThroughProfiler final : public Profiler {
public:
    using Profiler::Profiler;
    void start(std::string_view) override {}
    void stop(std::string_view) override {}
};

}   // namespace drawpoint
