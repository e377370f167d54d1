#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include <boost/test/unit_test.hpp>

#include "support/temporary_folder.hpp"

/// Runs the built program as a user does.
namespace drawpoint::test {

struct Result {
    int code = -1;   ///< exit code; 128 + signal if a signal killed it
    std::string out, err;
};

struct Environment {
    std::vector<std::string> variables;   ///< "NAME=value"
    std::uint64_t most_file_bytes = 0;    ///< 0: no limit
    std::string err{};                    ///< stderr goes to this path, or is "closed"; empty: it goes into Result
};

/// A running program; its output goes to files.
class Program {
public:
    explicit Program(const std::vector<std::string>& arguments, const Environment& environment = {});
    ~Program();
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    [[nodiscard]] bool running();
    [[nodiscard]] pid_t id() const noexcept { return id_; }
    [[nodiscard]] std::string printed() const;   ///< on stdout so far
    void interrupt(int signal = SIGINT);
    [[nodiscard]] Result wait();

private:
    TemporaryFolder folder_;
    pid_t id_;
    int status_ = 0;
    bool ended_ = false;
};

[[nodiscard]] Result run_program(const std::vector<std::string>& arguments, const Environment& environment = {});

/// A folder of 2 classes with 9 small JPEG files each.
void make_photos(const std::filesystem::path& folder);

/// Fails the test unless the program ended with `code` and wrote exactly one line to stderr, which begins with
/// "drawpoint: " and contains all `parts`.
void check_complaint(const Result&, int code, const std::vector<std::string>& parts);

}   // namespace drawpoint::test
