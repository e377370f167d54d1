#pragma once

#include <cstddef>
#include <memory>

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
    Crew() noexcept;
    Crew(Crew&&) noexcept;
    Crew& operator=(Crew&&) noexcept;
    ~Crew();

    /// Number of threads that run the work, or will as soon as oneTBB provides them; fewer than asked for if the system
    /// refused some.
    [[nodiscard]] std::size_t size() const noexcept;
    /// Waits for the threads that have begun the work; others no longer will. The work must have been told to stop.
    void join() noexcept;

private:
    friend class WorkerPool;
    struct Impl;
    explicit Crew(std::unique_ptr<Impl>) noexcept;
    std::unique_ptr<Impl> impl_;
};

/// Provides threads. Each loader has crews of its own, so that its sleeping workers never keep another loader's from
/// running. With oneTBB, raises the allowed parallelism to what all living crews need. Any thread; must outlive its
/// crews.
class WorkerPool {
public:
    explicit WorkerPool(WorkerThreads);
    ~WorkerPool();
    WorkerPool(const WorkerPool&) = delete;
    WorkerPool& operator=(const WorkerPool&) = delete;

    /// Starts `workers` ≥ 1 threads that run `work`, which must outlive the crew. The crew is smaller, or empty, if
    /// the system refuses threads. Throws std::bad_alloc.
    [[nodiscard]] Crew start(std::size_t workers, CrewWork& work);

    struct Impl;

private:
    std::unique_ptr<Impl> impl_;
};

}   // namespace drawpoint
