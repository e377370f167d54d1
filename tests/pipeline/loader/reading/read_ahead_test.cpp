#include "pipeline/loader/reading/read_ahead.hpp"

#include <cerrno>
#include <filesystem>
#include <latch>
#include <numeric>
#include <random>
#include <system_error>
#include <thread>

#include <sys/prctl.h>

#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/loader/reading/read_backend.hpp>

#include <drawpoint/pipeline/loader/machine/detail/slot_bytes.hpp>
#include "pipeline/loader/stored_source.hpp"

BOOST_AUTO_TEST_SUITE(read_ahead)

using namespace drawpoint;
using namespace std::chrono_literals;
using test::StoredSource;

namespace {

/// Announces a batch with the samples 0 … n - 1 in slot 0.
struct Wanting {
    explicit Wanting(StoredSource& from, ReadAheadOptions options = {})
        : source{from}, indices(from.size()), reads{from, from, with_size(options, from.size()), AnyClock{}} {
        std::iota(indices.begin(), indices.end(), 0);
        reads.withdraw(0, 0);
        reads.perform(reads.want(0, indices));
    }
    static ReadAheadOptions with_size(ReadAheadOptions options, std::size_t n) {
        options.batch_size = n;
        options.slots = 1;
        return options;
    }
    /// Takes sample `at` and gives its bytes back; returns whether they were correct.
    bool take(std::uint32_t at) {
        const ReadAhead::Taken taken = reads.take(worker, 0, at, indices[at]);
        const bool own = StoredSource::holds(indices[at], *taken.contents);
        ahead += taken.times.begin_ns != no_stamp;
        reads.done(worker, taken, 1000);
        return own;
    }

    StoredSource& source;
    std::vector<std::uint64_t> indices;
    WorkerReads worker;
    std::size_t ahead = 0;
    ReadAhead reads;
};

void wait_a_little(std::uint64_t) { std::this_thread::sleep_for(1ms); }

/// Opens random batches and abandons some, while workers take their samples: like a loader without its loop.
class Storm {
public:
    Storm(const StoredSource& source, ReadAhead& reads, std::size_t slots, std::size_t batch, unsigned seed)
        : source_{source}, reads_{reads}, batch_{batch}, slots_(slots), random_{seed} {
        for (Slot& slot : slots_)
            slot.indices.resize(batch);
    }

    /// Opens `batches`, then waits for the workers, or stops them while they work.
    void run(std::size_t workers, std::size_t batches, bool stop_early) {
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < workers; ++i)
            threads.emplace_back([this] { work(); });
        for (std::size_t opened = 0; opened < batches;) {
            Slot& slot = slots_[random_() % slots_.size()];
            if (slot.left.load() == 0) {
                open(slot);
                ++opened;
            } else if (random_() % 256 == 0) {
                abandon(slot);
            } else {
                std::this_thread::yield();
            }
        }
        while (!stop_early && std::ranges::any_of(slots_, [](Slot& slot) { return slot.left.load() != 0; }))
            std::this_thread::yield();
        stopping_ = true;
        reads_.stop();
        for (std::thread& thread : threads)
            thread.join();
        reads_.join();
    }

    std::atomic<std::uint64_t> whole{0}, failed{0}, wrong{0};

private:
    struct Slot {
        std::vector<std::uint64_t> indices;
        std::uint32_t size = 0;
        std::atomic<std::uint64_t> claim{0};   // size << 32 | next unclaimed, as in a loader
        std::atomic<std::uint32_t> left{0};
    };

    [[nodiscard]] std::uint32_t number(const Slot& slot) const {
        return static_cast<std::uint32_t>(&slot - slots_.data());
    }
    void open(Slot& slot) {
        reads_.withdraw(number(slot), 0);
        slot.size = static_cast<std::uint32_t>(1 + random_() % batch_);
        for (std::uint32_t at = 0; at < slot.size; ++at)
            slot.indices[at] = random_() % (source_.size() + source_.size() / 50);   // some indices are out of range
        reads_.perform(reads_.want(number(slot), {slot.indices.data(), slot.size}));
        slot.left = slot.size;
        slot.claim.store(std::uint64_t{slot.size} << 32, std::memory_order_release);
    }
    void abandon(Slot& slot) {
        const std::uint64_t before = slot.claim.fetch_add(slot.size, std::memory_order_acq_rel);
        const std::uint32_t next = std::min(static_cast<std::uint32_t>(before), slot.size);
        reads_.withdraw(number(slot), next);
        slot.left.fetch_sub(slot.size - next);
    }
    void work() {
        WorkerReads worker;
        while (!stopping_)
            for (Slot& slot : slots_) {
                const std::uint64_t seen = slot.claim.load(std::memory_order_acquire);
                if (static_cast<std::uint32_t>(seen) >= seen >> 32)
                    continue;
                const std::uint64_t before = slot.claim.fetch_add(1, std::memory_order_acq_rel);
                if (static_cast<std::uint32_t>(before) >= before >> 32)
                    continue;
                one(worker, slot, static_cast<std::uint32_t>(before));
                slot.left.fetch_sub(1, std::memory_order_acq_rel);
            }
    }
    void one(WorkerReads& worker, const Slot& slot, std::uint32_t at) {
        const std::uint64_t index = slot.indices[at];
        if (index >= source_.size())
            return;
        try {
            const ReadAhead::Taken taken = reads_.take(worker, number(slot), at, index);
            ++(StoredSource::holds(index, *taken.contents) ? whole : wrong);
            reads_.done(worker, taken, 50'000);
        } catch (const std::system_error&) {
            ++failed;
        }
    }

    const StoredSource& source_;
    ReadAhead& reads_;
    std::size_t batch_;
    std::vector<Slot> slots_;
    std::mt19937 random_;
    std::atomic<bool> stopping_{false};
};

}   // namespace

BOOST_AUTO_TEST_CASE(while_reads_are_fast_the_workers_read_for_themselves) {
    StoredSource source{500};
    Wanting loader{source};
    for (std::uint32_t at = 0; at < 500; ++at)
        BOOST_REQUIRE(loader.take(at));
    BOOST_TEST(loader.ahead == 0u);
    BOOST_TEST(loader.reads.counters().readers == 0u);
    BOOST_TEST(source.reads_begun == 500u);
}

BOOST_AUTO_TEST_CASE(waiting_is_seen_whatever_the_timer_slack) {
    const long before = voluntary_switches();
    std::this_thread::sleep_for(1ms);
    if (voluntary_switches() == before)
        return;   // the system does not count them, and shorter reads than 100 µs are not taken for waiting
    StoredSource source{500};
    source.before_read = [](std::uint64_t) { std::this_thread::sleep_for(60us); };
    const int slack_ns = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1);   // so that the shortest sleep ends before the thread has left its core
    {
        Wanting loader{source};
        for (std::uint32_t at = 0; at < 500; ++at)
            BOOST_REQUIRE(loader.take(at));
        BOOST_TEST(loader.ahead > 250u);
    }
    prctl(PR_SET_TIMERSLACK, slack_ns);
}

BOOST_AUTO_TEST_CASE(slow_reads_are_in_flight_many_at_a_time_for_one_worker) {
    StoredSource source{200};
    std::latch together{9};
    source.before_read = [&](std::uint64_t index) {
        if (index < 2)
            wait_a_little(index);
        else if (index < 10)
            together.arrive_and_wait();   // needs eight readers and the test; with fewer it would block
    };
    Wanting loader{source, {.concurrency = 16}};
    BOOST_TEST(loader.take(0));
    BOOST_TEST(loader.take(1));
    together.arrive_and_wait();
    for (std::uint32_t at = 2; at < 200; ++at)
        BOOST_REQUIRE(loader.take(at));
    BOOST_TEST(source.most_at_a_time >= 8u);
    BOOST_TEST(source.most_at_a_time <= 17u);   // the worker reads, too
    BOOST_TEST(loader.ahead >= 8u);
    BOOST_TEST(source.reads_begun == 200u);
    BOOST_TEST(loader.reads.counters().most_held <= ReadPolicy::most_held(16));
}

BOOST_AUTO_TEST_CASE(a_late_read_fails_its_own_sample_at_the_deadline_and_another_reader_takes_over) {
    StoredSource source{60};
    std::latch stuck{1}, entered{1};
    source.before_read = [&](std::uint64_t index) {
        if (index == 2) {
            entered.count_down();
            stuck.wait();
        } else {
            wait_a_little(index);
        }
    };
    Wanting loader{source, {.concurrency = 1, .rules = {.deadline = 500ms}}};
    BOOST_TEST(loader.take(0));
    BOOST_TEST(loader.take(1));
    entered.wait();
    BOOST_CHECK_EXCEPTION(loader.take(2), std::system_error,
                          [](const std::system_error& error) { return error.code() == std::errc::timed_out; });
    for (std::uint32_t at = 3; at < 60; ++at)
        BOOST_REQUIRE(loader.take(at));
    BOOST_TEST(loader.reads.counters().late == 1u);
    BOOST_TEST(loader.reads.counters().readers == 2u);
    stuck.count_down();
}

BOOST_AUTO_TEST_CASE(a_failed_read_ahead_is_the_failure_of_its_sample_alone) {
    StoredSource source{60};
    source.before_read = [&](std::uint64_t index) {
        wait_a_little(index);
        if (index == 20)
            throw std::filesystem::filesystem_error{"cannot open", "x",
                                                    std::make_error_code(std::errc::permission_denied)};
    };
    Wanting loader{source};
    for (std::uint32_t at = 0; at < 60; ++at) {
        if (at == 20)
            BOOST_CHECK_THROW(loader.take(at), std::filesystem::filesystem_error);
        else
            BOOST_REQUIRE(loader.take(at));
    }
    BOOST_TEST(source.reads_begun == 60u);
}

BOOST_AUTO_TEST_CASE(a_stop_ends_the_wait_for_a_read) {
    StoredSource source{60};
    std::latch stuck{1}, entered{1};
    source.before_read = [&](std::uint64_t index) {
        wait_a_little(index);
        if (index == 2) {
            entered.count_down();
            stuck.wait();
        }
    };
    Wanting loader{source, {.concurrency = 1}};
    BOOST_TEST(loader.take(0));
    BOOST_TEST(loader.take(1));
    entered.wait();
    std::thread stops{[&] { loader.reads.stop(); }};
    BOOST_CHECK_EXCEPTION(loader.take(2), std::system_error,
                          [](const std::system_error& error) { return error.code() == std::errc::operation_canceled; });
    stops.join();
    stuck.count_down();
}

BOOST_AUTO_TEST_CASE(what_a_cache_holds_is_not_read_by_anybody) {
    struct Cached final : SampleReads {
        const StoredSource& source;
        explicit Cached(const StoredSource& from) : source{from} {}
        void read(std::uint64_t index, std::vector<std::byte>& contents) const override {
            source.read(index, contents);
        }
        std::optional<FileRange> location(std::uint64_t) const noexcept override { return std::nullopt; }
        bool wants(std::uint64_t index) const noexcept override { return index % 2 == 0; }
    };
    StoredSource source{100};
    source.before_read = wait_a_little;
    const Cached cached{source};
    std::vector<std::uint64_t> indices(100);
    std::iota(indices.begin(), indices.end(), 0);
    ReadAhead reads{source, cached, {.batch_size = 100, .slots = 1}, AnyClock{}};
    reads.perform(reads.want(0, indices));
    WorkerReads worker;
    for (std::uint32_t at = 0; at < 100; ++at) {
        const ReadAhead::Taken taken = reads.take(worker, 0, at, at);
        BOOST_TEST((taken.contents != nullptr) == (at % 2 == 0));
        reads.done(worker, taken, 1000);
    }
    BOOST_TEST(source.reads_begun == 50u);
}

BOOST_AUTO_TEST_CASE(held_bytes_stay_within_the_memory_given_but_for_what_is_in_flight) {
    StoredSource source{400};
    source.before_read = wait_a_little;
    constexpr std::uint64_t memory = 4096;
    Wanting loader{source, {.concurrency = 4, .memory = memory}};
    std::uint64_t most = 0;
    for (std::uint32_t at = 0; at < 400; ++at) {
        BOOST_REQUIRE(loader.take(at));
        most = std::max(most, loader.reads.counters().bytes);
        BOOST_REQUIRE(loader.reads.counters().bytes <= memory + 5 * contents_memory_bytes(StoredSource::bytes_of(6)));
    }
    BOOST_TEST(most >= contents_memory_bytes(StoredSource::bytes_of(6)));
    loader.reads.retarget(4, 1, 1);   // frees what it holds
    BOOST_TEST(loader.reads.counters().bytes < most);
    BOOST_TEST(loader.reads.counters().most_bytes >= most);
    BOOST_TEST(loader.ahead > 0u);
}

namespace {

void storm_over(StoredSource::In where, std::size_t workers, bool stop_early) {
    std::uint64_t ahead = 0;
    for (unsigned seed = 0; seed < 4; ++seed) {
        StoredSource source{300, where};
        source.before_read = [&](std::uint64_t index) {
            if (index % 3 != 0)
                std::this_thread::sleep_for(std::chrono::microseconds{index % 5 * 40});
            if (index % 29 == 0)
                throw std::filesystem::filesystem_error{"cannot open", "x",
                                                        std::make_error_code(std::errc::permission_denied)};
            if (index % 31 == 0 && source.reads_begun % 2 == 0)
                throw std::filesystem::filesystem_error{"cannot read", "x", std::make_error_code(std::errc::io_error)};
        };
        // Reads of files bypass before_read and are fast, so only the worker's own reads make storage look slow.
        ReadAhead reads{source,
                        source,
                        {.concurrency = 1 + seed * 5,
                         .num_workers = workers,
                         .batch_size = 16,
                         .slots = 5,
                         .rules = {.deadline = seed == 1 ? 300us : 0us, .retries = 1}},
                        AnyClock{}};
        Storm storm{source, reads, 5, 16, seed};
        storm.run(workers, 60, stop_early);
        BOOST_TEST(storm.wrong == 0u);
        if (!stop_early)
            BOOST_TEST(storm.whole > 0u);
        ahead += reads.counters().ahead;
    }
    BOOST_TEST(ahead > 0u);
}

}   // namespace

BOOST_AUTO_TEST_CASE(whatever_happens_every_sample_gets_its_own_bytes) {
    for (const auto where : {StoredSource::In::memory, StoredSource::In::files, StoredSource::In::one_file})
        for (const std::size_t workers : {1u, 4u})
            for (const bool stop_early : {false, true})
                storm_over(where, workers, stop_early);
}

BOOST_AUTO_TEST_CASE(files_are_read_ahead_by_the_ring_or_by_threads_alike) {
    for (const bool ring : {false, true})
        for (const auto where : {StoredSource::In::files, StoredSource::In::one_file}) {
            StoredSource source{300, where};
            source.before_read = [](std::uint64_t index) { wait_a_little(index); };
            Wanting loader{source, {.concurrency = 8, .io_uring = ring}};
            for (std::uint32_t at = 0; at < 300; ++at)
                BOOST_REQUIRE(loader.take(at));
            BOOST_TEST(loader.ahead > 0u);
            if (ring && read_backend().io_uring)
                BOOST_TEST(loader.reads.counters().readers == 1u);
        }
}

BOOST_AUTO_TEST_CASE(a_read_that_failed_leaves_nothing_to_the_next_one) {
    StoredSource source{40};
    source.before_read = [](std::uint64_t index) {
        wait_a_little(index);
        if (index % 8 == 3)
            throw std::filesystem::filesystem_error{"cannot open", "x",
                                                    std::make_error_code(std::errc::permission_denied)};
    };
    Wanting loader{source, {.concurrency = 1}};
    for (std::uint32_t at = 0; at < 40; ++at) {
        if (at % 8 == 3)
            BOOST_CHECK_THROW((void)loader.take(at), std::filesystem::filesystem_error);
        else
            BOOST_REQUIRE(loader.take(at));
        std::this_thread::sleep_for(2ms);   // the reader gets ahead
    }
    BOOST_TEST(loader.ahead > 0u);
}

BOOST_AUTO_TEST_CASE(reads_that_failed_or_that_nobody_took_leave_their_buffers_to_others) {
    StoredSource source{100};
    std::atomic<bool> fails{true};
    source.before_read = [&](std::uint64_t index) {
        wait_a_little(index);
        if (fails && index % 2 == 1)
            throw std::filesystem::filesystem_error{"cannot open", "x",
                                                    std::make_error_code(std::errc::permission_denied)};
    };
    Wanting loader{source, {.concurrency = 2}};
    for (std::uint32_t at = 0; at < 100; ++at)
        if (at % 2 == 1)
            BOOST_CHECK_THROW((void)loader.take(at), std::filesystem::filesystem_error);
        else
            BOOST_REQUIRE(loader.take(at));
    for (int round = 0; round < 100; ++round) {   // withdrawn while they are read, or once they are there
        loader.reads.withdraw(0, 0);
        loader.reads.perform(loader.reads.want(0, loader.indices));
        std::this_thread::sleep_for(round % 2 == 0 ? 500us : 5ms);
    }
    loader.reads.withdraw(0, 0);
    fails = false;
    loader.reads.perform(loader.reads.want(0, loader.indices));
    loader.ahead = 0;
    for (std::uint32_t at = 0; at < 100; ++at)
        BOOST_REQUIRE(loader.take(at));
    BOOST_TEST(loader.ahead > 0u);
}

BOOST_AUTO_TEST_CASE(a_stop_ends_the_pause_before_a_repetition) {
    StoredSource source{2};
    source.before_read = [](std::uint64_t) {
        throw std::filesystem::filesystem_error{"cannot read", "x", std::make_error_code(std::errc::io_error)};
    };
    Wanting loader{source, {.concurrency = 0, .rules = {.retries = 100}}};
    std::thread worker{[&] { BOOST_CHECK_THROW((void)loader.take(0), std::system_error); }};
    while (source.reads_begun < 8)   // the next one would begin a second later
        std::this_thread::yield();
    loader.reads.stop();
    worker.join();
    BOOST_TEST(source.reads_begun == 8u);
}

BOOST_AUTO_TEST_CASE(a_file_that_shrank_ends_its_reads) {
    if (read_backend().io_uring) {
        StoredSource source{40, StoredSource::In::one_file};
        const std::uint64_t begin = source.location(5)->offset;
        source.before_read = wait_a_little;
        std::filesystem::resize_file(source.file(5), begin + 4);
        Wanting loader{source, {.concurrency = 16, .rules = {.retries = 0}}};
        for (std::uint32_t at = 0; at < 5; ++at) {
            while (at == 2 && loader.reads.counters().ahead < 4)   // 2 … 5 have begun, since reads begin in order
                std::this_thread::yield();
            BOOST_REQUIRE(loader.take(at));
        }
        BOOST_CHECK_EXCEPTION(loader.take(5), std::filesystem::filesystem_error, [](const auto& error) {
            return error.code() == std::errc::io_error &&
                   std::string_view{error.what()}.find("shrank") != std::string_view::npos;
        });
    }
}

BOOST_AUTO_TEST_CASE(the_ring_repeats_a_read_that_fails_for_a_moment_as_often_as_asked) {
    if (!read_backend().io_uring)
        return;
    for (const bool for_ever : {false, true}) {
        StoredSource source{40, StoredSource::In::one_file};
        const std::string whole = test::bytes_in(source.file(5));
        source.before_read = wait_a_little;
        std::filesystem::resize_file(source.file(5), source.location(5)->offset + 4);
        Wanting loader{source, {.concurrency = 16, .rules = {.retries = for_ever ? 2u : 1000u}}};
        for (std::uint32_t at = 0; at < 5; ++at) {
            while (at == 2 && loader.reads.counters().ahead < 3)   // 2 … 5 have begun, since reads begin in order
                std::this_thread::yield();
            BOOST_REQUIRE(loader.take(at));
        }
        if (for_ever) {
            BOOST_CHECK_EXCEPTION(loader.take(5), std::system_error, [](const auto& error) {
                return error.code() == std::errc::io_error &&
                       std::string_view{error.what()} == "cannot read, tried 3 times: Input/output error";
            });
        } else {
            while (loader.reads.counters().retries == 0)
                std::this_thread::yield();
            test::put_bytes(source.file(5), whole);
            BOOST_TEST(loader.take(5));
        }
        BOOST_TEST(loader.reads.counters().retries >= (for_ever ? 2u : 1u));
    }
}

BOOST_AUTO_TEST_CASE(the_ring_says_what_is_wrong_with_a_file_as_a_read_does) {
    StoredSource source{40, StoredSource::In::files};
    std::filesystem::remove(source.file(5));
    std::filesystem::remove(source.file(6));
    std::filesystem::create_directory(source.file(6));
    const auto worker = std::this_thread::get_id();
    bool read_here = false;   // by the worker, either of the two reads
    source.before_read = [&](std::uint64_t index) {
        wait_a_little(index);
        if (std::this_thread::get_id() == worker)
            read_here = read_here || index == 5 || index == 6;
    };
    for (const bool ring : {false, true}) {
        Wanting loader{source, {.concurrency = 16, .io_uring = ring}};
        for (std::uint32_t at = 0; at < 40; ++at) {
            while (at == 2 && loader.reads.counters().ahead < 5)   // 2 … 6 have begun, since reads begin in order
                std::this_thread::yield();
            const auto refused = [&](std::errc what) {
                return [&, what](const std::filesystem::filesystem_error& error) {
                    return error.code() == what && error.path1() == source.file(at);
                };
            };
            if (at == 5)
                BOOST_CHECK_EXCEPTION(loader.take(at), std::filesystem::filesystem_error,
                                      refused(std::errc::no_such_file_or_directory));
            else if (at == 6)
                BOOST_CHECK_EXCEPTION(loader.take(at), std::filesystem::filesystem_error,
                                      refused(std::errc::is_a_directory));
            else
                BOOST_REQUIRE(loader.take(at));
        }
        BOOST_TEST(!read_here);
    }
}

BOOST_AUTO_TEST_SUITE_END()
