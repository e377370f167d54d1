// The whole loader, its coroutines, workers and hand-over, under random schedules of its threads in virtual time.
#include <boost/test/unit_test.hpp>

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/co_spawn.hpp>

#include <drawpoint/pipeline/errors.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>

#include "pipeline/loader/numbered_source.hpp"
#include "simulation/simulation.hpp"
#include "support/count_allocations.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

using simulation::below;
using test::NumberedSource;

/// What a run is made of, each number drawn by the seed unless it is given.
struct Plan {
    std::uint64_t seed = 0;
    std::map<std::string, std::uint64_t, std::less<>> numbers;

    /// A number from `least` to `most`.
    std::uint64_t operator()(std::string_view name, std::uint64_t least, std::uint64_t most) {
        const auto known = numbers.find(name);
        if (known != numbers.end())
            return known->second;
        std::uint64_t value = seed + 1;
        for (const char letter : name)
            value = (value ^ static_cast<unsigned char>(letter)) * 0x9E3779B97F4A7C15 ^ value >> 29;
        value = least + (value >> 20) % (most - least + 1);
        numbers.emplace(name, value);
        return value;
    }
    [[nodiscard]] std::string text() const {
        std::string all = "seed=" + std::to_string(seed);
        for (const auto& [name, value] : numbers)
            all += " " + name + "=" + std::to_string(value);
        return all;
    }
    static Plan of(std::string_view text) {
        Plan plan;
        while (!text.empty()) {
            const std::string_view word = text.substr(0, text.find(' '));
            const std::size_t equals = word.find('=');
            const std::uint64_t value = std::strtoull(std::string{word.substr(equals + 1)}.c_str(), nullptr, 10);
            if (word.starts_with("seed="))
                plan.seed = value;
            else
                plan.numbers[std::string{word.substr(0, equals)}] = value;
            text.remove_prefix(std::min(text.size(), word.size() + 1));
        }
        return plan;
    }
};

/// Another order in each epoch; in parts or not.
class Rotation final : public Sampler, private OrderParts {
public:
    Rotation(std::size_t n, bool in_parts) : n_{n}, in_parts_{in_parts} {}
    [[nodiscard]] std::size_t size() const noexcept override { return n_; }
    [[nodiscard]] std::uint64_t at(std::size_t epoch, std::size_t position) const {
        return (position + 3 * epoch + 1) % n_;
    }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override {
        for (std::size_t i = 0; i < order.size(); ++i) {
            order[i] = at(epoch, i);
            if (i % 8 == 0)
                simulation::yield();
        }
    }

    [[nodiscard]] const OrderParts* parts() const noexcept override { return in_parts_ ? this : nullptr; }

private:
    void part(std::size_t epoch, std::uint64_t first, std::uint64_t stride,
              std::span<std::uint64_t> part) const noexcept override {
        for (std::size_t i = 0; i < part.size(); ++i)
            part[i] = at(epoch, first + i * stride);
        simulation::yield();
    }

    std::size_t n_;
    bool in_parts_;
};

/// Gives batches back from a thread of its own, one after the other.
class Giver {
public:
    Giver() : thread_{[this] { run(); }} {}
    ~Giver() {
        {
            const std::lock_guard lock{mutex_};
            ends_ = true;
        }
        changed_.notify_one();
        thread_.join();
    }
    void give(Batch batch) {
        const std::lock_guard lock{mutex_};
        batches_.push_back(std::move(batch));
        changed_.notify_one();
    }
    /// Those that are not yet given back.
    [[nodiscard]] std::size_t size() {
        const std::lock_guard lock{mutex_};
        return batches_.size();
    }

private:
    void run() {
        std::unique_lock lock{mutex_};
        for (;;) {
            changed_.wait(lock, [this] { return ends_ || !batches_.empty(); });
            if (batches_.empty())
                return;
            lock.unlock();
            simulation::sleep_for(static_cast<std::int64_t>(1 + below(200'000)));
            lock.lock();
            const Batch batch = std::move(batches_.front());
            batches_.pop_front();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Batch> batches_;
    bool ends_ = false;
    std::thread thread_;
};

void fail(const Plan& plan, const std::string& what) {
    std::fprintf(stderr, "%s: %s\n", plan.text().c_str(), what.c_str());
    std::fflush(stderr);
    ::_exit(3);
}

/// What the passes must give: a list of batches, and which of them are still to come.
class Oracle {
public:
    Oracle(Plan& plan, const Rotation& order, std::size_t batch_size, std::set<std::uint64_t> bad, OnError policy,
           OrderRule rule)
        : plan_{plan}, order_{order}, batch_size_{batch_size}, bad_{std::move(bad)}, policy_{policy}, rule_{rule} {}

    void begin(std::size_t epoch) {
        epoch_ = epoch;
        left_.clear();
        for (std::size_t first = 0; first < order_.size(); first += batch_size_) {
            std::vector<std::uint64_t> batch;
            for (std::size_t i = first; i < std::min(first + batch_size_, order_.size()); ++i)
                batch.push_back(order_.at(epoch, i));
            left_.push_back({batch, 0});
        }
        skip_empty();
    }
    [[nodiscard]] bool over() const { return left_.empty(); }
    /// Batches may be overtaken as often again.
    void restored() {
        for (Left& left : left_)
            left.overtaken = 0;
    }

    void drawn(const Batch& batch, const NumberedSource& source) {
        if (const std::string fault = source.fault(batch, 5); !fault.empty() || batch.epoch() != epoch_)
            fail(plan_, "wrong batch: " + fault);
        take([&](const std::vector<std::uint64_t>& samples) {
            return std::ranges::equal(batch.indices(), made_of(samples));
        });
    }
    void failed(const SampleError& error) {
        std::vector<std::uint64_t> indices{error.index()};
        for (const SampleError& other : error.others())
            indices.push_back(other.index());
        take([&](const std::vector<std::uint64_t>& samples) {
            std::vector<std::uint64_t> expected;
            for (const std::uint64_t index : samples)
                if (bad_.contains(index))
                    expected.push_back(index);
            std::ranges::sort(expected);
            std::ranges::sort(indices);
            return policy_ == OnError::raise && !expected.empty() && indices == expected;
        });
    }

private:
    struct Left {
        std::vector<std::uint64_t> samples;
        std::uint64_t overtaken;
    };
    /// The samples of a batch that comes; empty: none of it does.
    [[nodiscard]] std::vector<std::uint64_t> made_of(std::vector<std::uint64_t> samples) const {
        if (policy_ == OnError::skip)
            std::erase_if(samples, [&](std::uint64_t index) { return bad_.contains(index); });
        else if (policy_ == OnError::raise && std::ranges::any_of(samples, [&](auto i) { return bad_.contains(i); }))
            samples.clear();
        return samples;
    }
    template <class Is>
    void take(Is is) {
        const auto found = std::ranges::find_if(left_, [&](const Left& left) { return is(left.samples); });
        if (found == left_.end())
            fail(plan_, "a batch that was not to come");
        for (auto older = left_.begin(); older != found; ++older)
            if (++older->overtaken > rule_.max_overtakes)
                fail(plan_, "a batch is overtaken too often");
        left_.erase(found);
        skip_empty();
    }
    void skip_empty() {
        if (policy_ == OnError::skip)
            std::erase_if(left_, [&](const Left& left) { return made_of(left.samples).empty(); });
    }

    Plan& plan_;
    const Rotation& order_;
    std::size_t batch_size_;
    std::set<std::uint64_t> bad_;
    OnError policy_;
    OrderRule rule_;
    std::size_t epoch_ = 0;
    std::vector<Left> left_;
};

/// Everything that a run needs again and again.
struct Bench {
    std::unique_ptr<Recorder> recorder = test::small_recorder();
    Runtime runtime{{.max_threads = 8, .workers = WorkerThreads::threads, .record = false}, *recorder};
};

struct Case {
    Plan& plan;
    Bench* bench;   // null: only what the plan is
    NumberedSource source;
    Rotation order;
    Oracle oracle;
    LoaderOptions options;
    std::size_t passes, restores = 0;
    std::vector<Batch> held;
    std::optional<Giver> giver;
    bool done = false;
    std::uint64_t fails_at = 0, left_to_fail = 0;   // this allocation fails, 0: none; how many are left up to it

    /// While this lives, allocations count and may fail: not in coroutines, since Asio ends the program if it has no
    /// memory for one's frame.
    struct MayFail {
        explicit MayFail(Case& of) : left{of.left_to_fail} {
            if (left != 0)
                test::fail_allocation_after(left - 1);
        }
        ~MayFail() { left = test::fail_no_allocation(); }
        MayFail(const MayFail&) = delete;
        std::uint64_t& left;
    };

    static std::set<std::uint64_t> bad_samples(Plan& plan, std::size_t n) {
        std::set<std::uint64_t> bad;
        for (std::uint64_t left = plan("bad", 0, 3) % 3; left != 0; --left)
            bad.insert(plan("bad" + std::to_string(left), 0, 1000) % n);
        return bad;
    }
    Case(Plan& of, Bench* on)
        : plan{of},
          bench{on},
          source{plan("samples", 1, 14), 1},
          order{source.size(), plan("parts", 0, 1) == 1},
          oracle{plan,
                 order,
                 plan("batch", 1, 4),
                 bad_samples(plan, source.size()),
                 static_cast<OnError>(plan("on_error", 0, 1)),
                 OrderRule{static_cast<std::uint32_t>(plan("overtakes", 0, 2))}},
          options{.batch_size = plan("batch", 1, 4),
                  .num_workers = plan("workers", 1, 4),
                  .prefetch_depth = plan("depth", 1, 3),
                  .seed = 5,
                  .order = OrderRule{static_cast<std::uint32_t>(plan("overtakes", 0, 2))},
                  .on_error = static_cast<OnError>(plan("on_error", 0, 1)),
                  .max_errors = 1000,
                  .read_concurrency = 0},
          passes{plan("passes", 1, 3)} {
        source.runs = plan("runs", 0, 1) == 1;
        source.fails = [bad = bad_samples(plan, source.size())](std::uint64_t index) { return bad.contains(index); };
        const std::uint64_t slow = plan("slow", 0, 3);
        source.before_fill = [slow](std::uint64_t) {
            if (slow != 0 && below(4) < slow)
                simulation::sleep_for(static_cast<std::int64_t>(1 + below(400'000)));
            else
                simulation::yield();
        };
    }

    void give_one_back() {
        const std::size_t at = below(held.size());
        std::swap(held[at], held.back());
        if (giver && below(2) == 0)
            giver->give(std::move(held.back()));
        held.pop_back();
    }
    /// No more than the loader has room for beside the next one.
    void make_room(std::size_t depth) {
        while (held.size() + (giver ? giver->size() : 0) > depth)
            if (!held.empty())
                give_one_back();
            else
                simulation::sleep_for(50'000);
    }

    /// Draws one batch, in one of the ways there are. False: the pass is over.
    Awaitable<bool> draw(DataLoader& loader, DataLoader::Pass& pass) {
        make_room(loader.options().prefetch_depth);
        const std::uint64_t how = below(8);
        try {
            std::optional<Batch> batch;
            if (how == 0 || fails_at != 0) {
                const MayFail may_fail{*this};
                batch = pass.next_blocking();
            } else if (how < 3 && plan("timeouts", 0, 1) == 1) {
                try {
                    const std::chrono::nanoseconds patience(below(300'000));
                    auto timed = co_await pass.next_for(patience);
                    batch = std::move(timed);
                } catch (const std::system_error& error) {
                    if (error.code() != asio::error::timed_out)
                        throw;
                    co_return true;   // nothing was taken
                }
            } else {
                auto next = co_await pass.next();
                batch = std::move(next);
            }
            if (!batch)
                co_return false;
            if (fails_at == 0)
                oracle.drawn(*batch, source);
            else if (const std::string fault = source.fault(*batch, 5); !fault.empty())
                fail(plan, fault);
            if (below(3) == 0)
                held.push_back(std::move(*batch));
        } catch (const SampleError& error) {
            if (fails_at == 0)   // else a sample may have failed for want of memory
                oracle.failed(error);
        }
        if (!held.empty() && below(2) == 0)
            give_one_back();
        co_return true;
    }

    std::unique_ptr<DataLoader> make_loader() {
        const MayFail may_fail{*this};
        return std::make_unique<DataLoader>(bench->runtime, source, order, options);
    }
    DataLoader::Pass begin(DataLoader& loader, std::size_t epoch) {
        const MayFail may_fail{*this};
        return loader.epoch(epoch, {.next_epoch = plan("ahead", 0, 1) == 1});
    }

    Awaitable<void> loop() {
        left_to_fail = fails_at;
        if (fails_at == 0 && plan("giver", 0, 1) == 1)
            giver.emplace();
        auto loader = make_loader();
        for (std::size_t epoch = 0; epoch < passes; ++epoch) {
            oracle.begin(epoch);
            bool over = false;
            while (!over) {
                std::string state;
                {
                    auto pass = begin(*loader, epoch);
                    while (!over && state.empty()) {
                        auto drawing = draw(*loader, pass);
                        const bool came = co_await std::move(drawing);
                        if (!came) {
                            if (!oracle.over() && fails_at == 0)
                                fail(plan, "the pass ended early");
                            over = true;
                        } else if (below(16) == 0 && plan("retunes", 0, 1) == 1) {
                            const MayFail may_fail{*this};
                            loader->reconfigure({.num_workers = 1 + below(4), .prefetch_depth = 1 + below(3)});
                        } else if (below(16) == 0 && plan("restores", 0, 1) == 1 && ++restores < 4) {
                            state = loader->state();
                        } else if (below(24) == 0 && plan("leaves", 0, 1) == 1) {
                            over = true;   // what is left of the pass is given up
                        }
                    }
                }
                if (state.empty())
                    continue;
                held.clear();
                loader.reset();   // while its workers are wherever they are
                options.num_workers = 1 + below(4);
                options.prefetch_depth = 1 + below(3);
                loader = make_loader();
                loader->restore(state);
                oracle.restored();
            }
        }
        if (below(2) == 0)
            held.clear();   // else batches outlive their loader
        loader.reset();
        held.clear();
        giver.reset();
    }
};

/// Runs a plan; ends the process if anything is wrong. Returns what happened, as a hash. The allocation
/// `fails_at` of the plan fails, from 1, if there are so many (`has_failed`); then the run may end with an error.
std::uint64_t simulate(Plan plan, Bench& bench, bool* has_failed = nullptr) {
    bool failed = false;
    const std::uint64_t fails_at = plan("fails_at", 0, 0);
    const std::string before = plan.text();
    simulation::run(plan.seed, before.c_str(), [&] {
        Case run{plan, &bench};
        run.fails_at = fails_at;
        bool cancels = plan("cancels", 0, 3) == 0, cancelled = false;
        asio::cancellation_signal cancel;
        auto ended = [&](std::exception_ptr error) {
            failed = fails_at != 0 && run.left_to_fail == 0;
            if (error && fails_at == 0)
                try {
                    std::rethrow_exception(error);
                } catch (const std::system_error& what) {
                    if (!cancelled || what.code() != asio::error::operation_aborted)
                        fail(plan, what.what());
                } catch (const std::exception& what) {
                    fail(plan, what.what());
                }
            run.done = true;
        };
        asio::co_spawn(bench.runtime.context(), run.loop(), asio::bind_cancellation_slot(cancel.slot(), ended));
        while (!run.done) {
            bench.runtime.context().restart();
            if (bench.runtime.context().poll() != 0)
                continue;
            if (cancels && below(100) == 0) {
                cancels = false;
                cancelled = true;
                cancel.emit(asio::cancellation_type::terminal);
            }
            simulation::idle();
        }
        bench.runtime.context().poll();
    });
    if (has_failed != nullptr)
        *has_failed = failed;
    return simulation::history();
}

/// Runs the seeds in a process of its own; returns whether none failed.
bool succeeds(const std::function<void(Bench&)>& what) {
    const pid_t child = ::fork();
    if (child == 0) {
        Bench bench;
        what(bench);
        std::fflush(stdout);
        ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    if (WIFSIGNALED(status))
        BOOST_TEST_MESSAGE("ended by signal " << WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Makes the plan's numbers smaller as long as it still fails.
Plan shrunk(Plan plan) {
    bool smaller = true;
    while (smaller) {
        smaller = false;
        for (auto& [name, value] : plan.numbers) {
            const std::uint64_t whole = value;
            for (const std::uint64_t less : {std::uint64_t{0}, whole / 2, whole - 1}) {
                if (less >= whole || (less == 0 && (name == "samples" || name == "batch" || name == "workers" ||
                                                    name == "depth" || name == "passes")))
                    continue;
                value = less;
                if (!succeeds([&](Bench& bench) { (void)simulate(plan, bench); })) {
                    smaller = true;
                    break;
                }
                value = whole;
            }
        }
    }
    return plan;
}

Plan whole_plan(std::uint64_t seed) {
    Plan plan{.seed = seed, .numbers = {}};
    (void)Case{plan, nullptr};
    for (const char* name : {"timeouts", "ahead", "retunes", "restores", "leaves", "giver"})
        (void)plan(name, 0, 1);
    (void)plan("cancels", 0, 3);
    return plan;
}

/// Simulates `count` seeds from `first` on; prints what failed, and the smallest plan like it.
void check(std::uint64_t first, std::uint64_t count) {
    const auto range = [](std::uint64_t from, std::uint64_t to) {
        return succeeds([&](Bench& bench) {
            for (std::uint64_t seed = from; seed < to; ++seed)
                (void)simulate(whole_plan(seed), bench);
        });
    };
    const bool holds = range(first, first + count);
    BOOST_TEST(holds);
    if (holds)
        return;
    // The first that fails by itself.
    std::uint64_t from = first, to = first + count;
    while (to - from > 1) {
        const std::uint64_t middle = from + (to - from) / 2;
        (range(from, middle) ? from : to) = middle;
    }
    const Plan plan = shrunk(whole_plan(from));
    BOOST_ERROR("a schedule fails; DRAWPOINT_SIMULATE='" << plan.text() << "' repeats it");
}

}   // namespace

BOOST_AUTO_TEST_SUITE(loader_simulation)

BOOST_AUTO_TEST_CASE(the_same_seed_gives_the_same_run) {
    BOOST_TEST(succeeds([](Bench& bench) {
        std::array<std::uint64_t, 200> histories{};
        for (int round = 0; round < 3; ++round)   // what happens only once in a process happens in the first
            for (std::uint64_t seed = 0; seed < histories.size(); ++seed) {
                const std::uint64_t history = simulate(whole_plan(seed), bench);
                if (round == 2 && history != histories[seed])
                    fail(whole_plan(seed), "not the same run");
                histories[seed] = history;
            }
    }));
}

BOOST_AUTO_TEST_CASE(memory_that_runs_out_at_any_place_is_an_error_and_no_hang) {
    if (!test::counts_allocations())
        return;
    BOOST_TEST(succeeds([](Bench& bench) {
        std::uint64_t places = 0;
        for (std::uint64_t seed = 0; seed < 200; ++seed) {
            (void)simulate(whole_plan(seed), bench);
            bool fails = true;
            for (std::uint64_t calls = 1; fails; ++calls) {
                Plan plan = whole_plan(seed);
                plan.numbers["fails_at"] = calls;
                const auto grows = [&] {
                    const std::size_t bytes = ::mallinfo2().uordblks;
                    (void)simulate(plan, bench, &fails);
                    return ::mallinfo2().uordblks > bytes;
                };
                int times = 0;   // malloc keeps some pieces of each size, which count as used
                while (grows())
                    if (++times == 100)
                        fail(plan, "memory leaks");
                places += fails;
            }
        }
        std::printf("%llu allocations failed\n", static_cast<unsigned long long>(places));
    }));
}

BOOST_AUTO_TEST_CASE(no_schedule_loses_repeats_or_hangs) {
    if (const char* const given = std::getenv("DRAWPOINT_SIMULATE"); given != nullptr) {
        BOOST_TEST(succeeds([&](Bench& bench) { (void)simulate(Plan::of(given), bench); }));
        return;
    }
    const auto number = [](const char* name, std::uint64_t unset) {
        const char* const given = std::getenv(name);
        return given != nullptr ? std::strtoull(given, nullptr, 10) : unset;
    };
    check(number("DRAWPOINT_SIMULATIONS_FROM", 0), number("DRAWPOINT_SIMULATIONS", 1'000'000));
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
