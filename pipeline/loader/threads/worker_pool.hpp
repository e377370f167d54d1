#pragma once

#include <cstddef>
#include <memory>

#include <drawpoint/pipeline/loader/runtime.hpp>

namespace drawpoint {

/// Work of a crew: called once on each of its threads, returns when it is told to stop by its own means.
class CrewWork {
public:
    virtual void work(std::size_t worker) noexcept = 0;

protected:
    ~CrewWork() = default;
};

/// The threads of one loader.
class Crew {
public:
    Crew() noexcept;
    Crew(Crew&&) noexcept;
    Crew& operator=(Crew&&) noexcept;
    ~Crew();

    /// Threads there are, or will be once the scheduler gives them; fewer than asked when the system refused.
    [[nodiscard]] std::size_t size() const noexcept;
    /// Waits for those that began; those that did not never will. The work must have been told to stop.
    void join() noexcept;

private:
    friend class WorkerPool;
    struct Impl;
    explicit Crew(std::unique_ptr<Impl>) noexcept;
    std::unique_ptr<Impl> impl_;
};

/// Hands out threads, a crew per loader, so that a loader whose workers sleep keeps none of another's from running. In an arena
/// build the allowed parallelism is kept at what all living crews need. Any thread; outlives its crews.
class WorkerPool {
public:
    explicit WorkerPool(WorkerThreads);
    ~WorkerPool();
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    /// Starts `workers` ≥ 1 threads in `work`, which outlives the crew. None at all when the system refuses them all.
    [[nodiscard]] Crew start(std::size_t workers, CrewWork& work);

    struct Impl;

private:
    std::unique_ptr<Impl> impl_;
};

}   // namespace drawpoint
