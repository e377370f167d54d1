#pragma once

#include <thread>
#include <vector>

#include "pipeline/loader/reading/read_ahead.hpp"

namespace drawpoint {

/// Reads on threads, each blocked in one read at a time.
class ReadThreads final : public Readers {
public:
    explicit ReadThreads(ReadAhead& ahead);
    ~ReadThreads() override { join(); }
    [[nodiscard]] bool grow() noexcept override;
    void join() noexcept override;

private:
    void work() noexcept;

    ReadAhead* ahead_;
    std::vector<std::thread> threads_;
};

}   // namespace drawpoint
