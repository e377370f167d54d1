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

/// Where a profiler's report goes. Without a file name: to a stream, on rank 0 alone.
struct ProfilerFiles {
    std::filesystem::path dirpath;   ///< empty: the `log_dir` given at `setup`
    std::string filename;            ///< without stage, rank and extension
};

/// Times actions by name. The base of all profilers in Lightning's manner, and of one's own: override `start` and
/// `stop`, then `summary`. One thread at a time.
class Profiler {
public:
    explicit Profiler(ProfilerFiles files = {}) : files_{std::move(files)} {}
    Profiler(const Profiler&) = delete;
    Profiler& operator=(const Profiler&) = delete;
    virtual ~Profiler() = default;

    virtual void start(std::string_view action) = 0;
    virtual void stop(std::string_view action) = 0;

    /// Times the action until the end of the scope, also by an exception: `const auto timed =
    /// profiler.profile("augment");`. Throws what `start` throws; then nothing is stopped, and an outer scope of the
    /// same name goes on.
    [[nodiscard]] ProfiledAction profile(std::string_view action);

    /// The report as text; empty: there is none.
    [[nodiscard]] virtual std::string summary() { return {}; }

    /// Writes the summary, if there is one, to the file or else on rank 0 to `output()`, then `teardown`s. A file is
    /// appended to. Throws std::system_error naming the file. Keeps what was measured: a second call reports it again.
    void describe();

    /// A stage ("fit", "validate", "test", "predict") begins on this rank.
    virtual void setup(std::string_view stage, int local_rank = 0, const std::filesystem::path& log_dir = {});
    /// A stage is over; files are closed.
    virtual void teardown(std::string_view stage);

    /// Standard output unless set; outlives the profiler.
    void set_output(std::ostream& stream) noexcept { output_ = &stream; }
    [[nodiscard]] std::ostream& output() const noexcept;

    [[nodiscard]] int local_rank() const noexcept { return local_rank_.value_or(0); }
    [[nodiscard]] const std::string& stage() const noexcept { return stage_; }
    [[nodiscard]] const std::filesystem::path& dirpath() const noexcept { return files_.dirpath; }
    /// The name this profiler gives a file, as `profile_file_name` says.
    [[nodiscard]] std::string file_name(std::string_view action = {}, std::string_view extension = ".txt") const;

private:
    ProfilerFiles files_;
    std::string stage_;
    std::optional<int> local_rank_;
    std::ostream* output_ = nullptr;
    std::ofstream file_;
};

/// `STAGE-FILENAME-RANK-ACTION` of the parts there are, with an extension. What no file name takes (\ / : * ? " < > |
/// line ends, tabs) becomes "_", runs of "_" one, outer blanks go; of nothing: "profile".
[[nodiscard]] std::string profile_file_name(std::string_view stage, std::string_view filename,
                                            std::optional<int> local_rank, std::string_view action,
                                            std::string_view extension);

/// An action being timed (`Profiler::profile`). An action stopped by hand before its scope ends stays as it was.
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

/// Times nothing: what code that profiles itself takes when nobody asks.
class PassThroughProfiler final : public Profiler {
public:
    using Profiler::Profiler;
    void start(std::string_view) override {}
    void stop(std::string_view) override {}
};

}   // namespace drawpoint
