#pragma once

#include <cstddef>
#include <thread>
#include <vector>

#include <drawpoint/pipeline/runtime/runtime.hpp>

namespace drawpoint {

/// The work of a crew, called once on each of its threads. It returns when it is told to stop, by means of its own.
class CrewWork {
public:
    virtual void work(std::size_t worker) noexcept = 0;

protected:
    ~CrewWork() = default;
};

/// A loader's threads, or some of them. Destroying it joins them.
class Crew {
public:
    Crew() noexcept = default;
    Crew(Crew&&) noexcept = default;
    Crew& operator=(Crew&&) noexcept;
    ~Crew() { join(); }

    /// Number of threads that run the work; fewer than asked for if the system refused some.
    [[nodiscard]] std::size_t size() const noexcept { return threads_.size(); }
    /// Waits for the threads. The work must have been told to stop.
    void join() noexcept;

private:
    friend class WorkerPool;
    std::vector<std::thread> threads_;
};

/// Starts threads. Each loader has crews of its own, so that its sleeping workers never keep another loader's from
/// running. Any thread.
class WorkerPool {
public:
    explicit WorkerPool(WorkerThreads kind) noexcept : kind_{kind} {}

    /// Starts `workers` ≥ 1 threads that run `work`, which must outlive the crew. The crew is smaller, or empty, if
    /// the system refuses threads. Throws std::bad_alloc.
    [[nodiscard]] Crew start(std::size_t workers, CrewWork& work) const;

private:
    WorkerThreads kind_;
};

}   // namespace drawpoint
