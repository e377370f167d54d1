#include "tests/cli/program.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <drawpoint/pipeline/image/photo_crops.hpp>

namespace drawpoint::test {
namespace {

std::vector<char*> pointers(std::vector<std::string>& words) {
    std::vector<char*> all;
    for (std::string& word : words)
        all.push_back(word.data());
    all.push_back(nullptr);
    return all;
}

}   // namespace

Program::Program(const std::vector<std::string>& arguments, const Environment& environment) {
    std::vector<std::string> words{DRAWPOINT_PROGRAM};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<std::string> variables = environment.variables;
    for (char** variable = environ; *variable; ++variable)   // without the tests' own settings
        if (!std::string_view{*variable}.starts_with("DRAWPOINT_"))
            variables.emplace_back(*variable);
    if (environment.most_file_bytes > 0)   // a program that counts coverage would write its counts, which are more
        variables.insert(variables.end(), {"GCOV_PREFIX=/nowhere", "GCOV_ERROR_FILE=/dev/null"});
    const std::vector<char*> argv = pointers(words), envp = pointers(variables);
    const std::string out = folder_.file("out"), err = folder_.file("err");
    id_ = fork();
    if (id_ < 0)
        throw std::runtime_error{"fork failed"};
    if (id_ == 0) {
        const int in = open("/dev/null", O_RDONLY), to_out = open(out.c_str(), O_CREAT | O_WRONLY, 0600),
                  to_err = open(err.c_str(), O_CREAT | O_WRONLY, 0600);
        dup2(in, 0);
        dup2(to_out, 1);
        dup2(to_err, 2);
        if (environment.err == "closed")
            close(2);
        else if (!environment.err.empty())
            dup2(open(environment.err.c_str(), O_WRONLY), 2);
        if (environment.most_file_bytes > 0) {
            const rlimit limit{environment.most_file_bytes, environment.most_file_bytes};
            setrlimit(RLIMIT_FSIZE, &limit);
        }
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, nullptr);
        execve(argv[0], argv.data(), envp.data());
        _exit(127);
    }
}

Program::~Program() {
    if (running()) {
        kill(id_, SIGKILL);
        waitpid(id_, &status_, 0);
    }
}

std::string Program::printed() const { return bytes_in(folder_ / "out"); }

bool Program::running() {
    if (!ended_)
        ended_ = waitpid(id_, &status_, WNOHANG) == id_;
    return !ended_;
}

void Program::interrupt(int signal) { kill(id_, signal); }

Result Program::wait() {
    if (!ended_)
        waitpid(id_, &status_, 0);
    ended_ = true;
    return {WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_), bytes_in(folder_ / "out"),
            bytes_in(folder_ / "err")};
}

Result run_program(const std::vector<std::string>& arguments, const Environment& environment) {
    return Program{arguments, environment}.wait();
}

void make_photos(const std::filesystem::path& folder) {
    const TemporaryFolder work;
    make_generated_photos(work.path() / "photos", 2, 3);
    (void)cut_photo_crops({.from = work.path() / "photos",
                           .out = work.path() / "crops",
                           .per_image = 9,
                           .size = {96, 80},
                           .held_out = 0});
    std::filesystem::copy(work.path() / "crops/train", folder, std::filesystem::copy_options::recursive);
}

void check_complaint(const Result& result, int code, const std::vector<std::string>& parts) {
    BOOST_TEST(result.code == code, "exit code " << result.code << ", expected " << code << ": " << result.err);
    BOOST_TEST(std::ranges::count(result.err, '\n') == 1, "not one line: " << result.err);
    BOOST_TEST(result.err.starts_with("drawpoint: "), result.err);
    for (const std::string& part : parts)
        BOOST_TEST(result.err.find(part) != std::string::npos, "'" << part << "' is missing in: " << result.err);
}

}   // namespace drawpoint::test
