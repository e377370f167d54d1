#include "pipeline/loader/threads/stall_watch.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <utility>

#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint {
namespace {

using namespace std::chrono_literals;

// So many looks in a timeout, which is how exact the times are that it tells.
constexpr int looks = 8;
constexpr std::chrono::nanoseconds least_tick = 5ms, most_tick = 1s;

std::string seconds(std::chrono::nanoseconds time) {
    const auto tenths = std::chrono::duration_cast<std::chrono::milliseconds>(time).count() / 100;
    return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}   // namespace

StallWatch::StallWatch(std::chrono::nanoseconds timeout, StallObserver* observer, std::string loader,
                       const SampleSource& source)
    : timeout_{timeout},
      tick_{std::clamp(timeout / looks, least_tick, most_tick)},
      observer_{observer},
      loader_{std::move(loader)},
      source_{&source},
      tell_after_{timeout} {}

void StallWatch::start() noexcept {
    if (thread_.joinable())
        return;
    try {
        thread_ = std::thread{[this] { run(); }};
    } catch (const std::exception&) {
        // the system refuses a thread
    }
}

void StallWatch::stop() noexcept {
    {
        const std::lock_guard lock{mutex_};
        stopping_ = true;
    }
    stopped_.notify_all();
    if (thread_.joinable())
        thread_.join();
}

WorkerActivity& StallWatch::add_worker(std::optional<std::uint32_t> number) {
    const std::lock_guard lock{mutex_};
    const std::size_t next = workers_.size();
    Worker& worker = workers_.emplace_back();
    worker.number = number.value_or(next);
    worker.seen.since = Clock::now();
    return worker.activity;
}

void StallWatch::begin_wait(std::uint64_t epoch, std::uint64_t drawn) noexcept {
    epoch_.store(epoch, std::memory_order_relaxed);
    drawn_.store(drawn, std::memory_order_relaxed);
    waits_.store(waits_.load(std::memory_order_relaxed) | 1, std::memory_order_release);
}

void StallWatch::end_wait() noexcept {
    const std::uint64_t waits = waits_.load(std::memory_order_relaxed);
    if ((waits & 1) != 0)
        waits_.store(waits + 1, std::memory_order_relaxed);
}

void StallWatch::run() noexcept {
    std::unique_lock lock{mutex_};
    while (!stopped_.wait_for(lock, tick_, [this] { return stopping_; })) {
        std::string text;
        try {
            text = look(Clock::now());
        } catch (const std::exception&) {
            // no memory to tell it; the next look may have some
        }
        if (text.empty())
            continue;
        lock.unlock();   // telling may take long
        if (observer_ != nullptr)
            observer_->stalled(text);
        else
            std::fprintf(stderr, "drawpoint: %s\n", text.c_str());
        lock.lock();
    }
}

std::string StallWatch::look(Clock::time_point now) {
    const auto see = [now](Seen& seen, std::uint64_t changes) {
        const bool has_changed = seen.changes != changes;
        if (has_changed)
            seen = {changes, now};
        return has_changed;
    };
    for (Worker& worker : workers_)
        (void)see(worker.seen, worker.activity.changes_.load(std::memory_order_relaxed));
    (void)see(seen_loop_, loop_.changes_.load(std::memory_order_relaxed));
    const std::uint64_t waits = waits_.load(std::memory_order_acquire);
    if (see(wait_, waits))
        tell_after_ = timeout_;
    if ((waits & 1) == 0 || now - wait_.since < tell_after_)
        return {};
    std::string text = told(now);
    tell_after_ *= 2;
    return text;
}

std::string StallWatch::told(Clock::time_point now) const {
    std::string text = "loader " + printable(loader_) + ": the loop has waited " + seconds(now - wait_.since) +
                       " for a batch of epoch " + std::to_string(epoch_.load(std::memory_order_relaxed)) +
                       ", of which " + std::to_string(drawn_.load(std::memory_order_relaxed)) + " are drawn";
    if (loop_.now_.load(std::memory_order_relaxed) != 0)
        text += "\n  the loop itself " + told_of(loop_, now - seen_loop_.since);
    for (const Worker& worker : workers_)
        text += "\n  worker " + std::to_string(worker.number) + " " + told_of(worker.activity, now - worker.seen.since);
    return text;
}

std::string StallWatch::told_of(const WorkerActivity& worker, std::chrono::nanoseconds since) const {
    using What = WorkerActivity::What;
    const std::uint64_t now = worker.now_.load(std::memory_order_relaxed);
    const std::uint64_t number = now & WorkerActivity::numbers;
    const std::string time = ", for " + seconds(since) + " or longer";
    const auto sample = [&] {
        std::string text = "sample " + std::to_string(number);
        try {
            if (number < source_->size())
                if (const std::string path = source_->path(number); !path.empty())
                    text += " (" + printable(path) + ")";
        } catch (...) {
            // the source does not know, or there is no memory for it
        }
        return text;
    };
    switch (static_cast<What>(now >> 56)) {
    case What::idle: break;
    case What::sample: return "makes " + sample() + time;
    case What::read: return "waits for the read of " + sample() + time;
    case What::collate: return "collates batch " + std::to_string(number) + time;
    case What::order: return "computes the sampler's order of epoch " + std::to_string(number) + time;
    }
    return "has nothing to make" + time;
}

}   // namespace drawpoint
