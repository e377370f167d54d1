#include <drawpoint/pipeline/loader/core/batch_slots.hpp>

#include <boost/test/unit_test.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <drawpoint/pipeline/loader/blocking.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include "pipeline/loader/numbered_source.hpp"
#include "support/coro_test.hpp"

namespace drawpoint {
namespace {

using test::NumberedSource;

/// Stands for a tensor in a slot: others may hold it, and thus its memory.
struct Holder {
    SlotMemory* memory;
    bool held = false;
    int* destroyed;
};
bool is_held(void* object) noexcept { return static_cast<Holder*>(object)->held; }
void destroy(void* object) noexcept {
    auto* const holder = static_cast<Holder*>(object);
    ++*holder->destroyed;
    holder->memory->release();
}

struct Loaded {
    std::unique_ptr<Recorder> recorder = test::small_recorder();
    Runtime runtime{{.record = false}, *recorder};
    NumberedSource source{60};
    SequentialSampler sampler{60};
};

BOOST_AUTO_TEST_SUITE(batch_slots)

BOOST_AUTO_TEST_CASE(large_memory_begins_at_a_huge_page) {
    SlotMemory* const memory = SlotMemory::allocate(5u << 20, 64);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(memory->data()) % (2u << 20) == 0u);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(memory->targets()) % 128 == 0u);
    BOOST_TEST(memory->bytes() == 6u << 20);
    memory->data()[(5u << 20) - 1] = std::byte{7};
    memory->targets()[63] = 9;
    memory->retain();
    memory->release();
    BOOST_TEST(memory->targets()[63] == 9);
    memory->release();
}

BOOST_AUTO_TEST_CASE(small_memory_is_small) {
    SlotMemory* const memory = SlotMemory::allocate(100, 3);
    BOOST_TEST(memory->bytes() == 256u);
    BOOST_TEST(reinterpret_cast<std::byte*>(memory->targets()) == memory->data() + 128);
    memory->release();
}

BOOST_AUTO_TEST_CASE(memory_that_cannot_be_had_is_bad_alloc) {
    BOOST_CHECK_THROW((void)SlotMemory::allocate(std::size_t{1} << 60, 1), std::bad_alloc);
}

BOOST_AUTO_TEST_CASE(memory_is_used_again_and_never_more_than_depth_plus_one) {
    for (const std::size_t workers : {0u, 2u}) {
        Loaded loaded;
        DataLoader loader{loaded.runtime,
                          loaded.source,
                          loaded.sampler,
                          {.batch_size = 2, .num_workers = workers, .prefetch_depth = 2}};
        std::set<const SlotMemory*> memories;
        for (auto& batch : blocking(loader))
            memories.insert(&batch.memory());
        BOOST_TEST(memories.size() <= 3u);
        BOOST_TEST(loader.counters().slots_bytes == memories.size() * ((*memories.begin())->bytes() + 2 * 8));
        BOOST_TEST(loader.counters().slots_replaced == 0u);
    }
}

BOOST_AUTO_TEST_CASE(memory_still_held_is_left_to_its_holder_and_replaced) {
    for (const std::size_t workers : {0u, 2u}) {
        Loaded loaded;
        int destroyed = 0;
        std::vector<std::unique_ptr<Holder>> holders;
        SlotMemory* kept = nullptr;
        std::vector<std::byte> bytes;
        {
            DataLoader loader{loaded.runtime,
                              loaded.source,
                              loaded.sampler,
                              {.batch_size = 2, .num_workers = workers, .prefetch_depth = 2}};
            std::size_t number = 0;
            for (auto& batch : blocking(loader)) {
                if (batch.attachment().object == nullptr) {
                    holders.push_back(std::make_unique<Holder>(Holder{&batch.memory(), false, &destroyed}));
                    batch.memory().retain();
                    batch.attachment() = {holders.back().get(), is_held, destroy};
                }
                auto* const holder = static_cast<Holder*>(batch.attachment().object);
                BOOST_TEST(holder->memory == &batch.memory());
                if (number++ == 7) {
                    holder->held = true;   // somebody keeps a tensor of this slot
                    kept = &batch.memory();
                    kept->retain();
                    bytes.assign(batch.data().begin(), batch.data().end());
                }
                BOOST_TEST(loaded.source.fault(batch, 0) == "");
            }
            BOOST_TEST(number == 30u);
            BOOST_TEST(loader.counters().slots_replaced == 1u);
            BOOST_TEST(destroyed == 1);
        }
        BOOST_TEST(destroyed == static_cast<int>(holders.size()));
        BOOST_CHECK(std::equal(bytes.begin(), bytes.end(), kept->data()));   // nobody has written there since
        kept->release();
    }
}

BOOST_AUTO_TEST_CASE(a_short_last_batch_shows_its_own_size) {
    Loaded loaded;
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, {.batch_size = 7}};
    std::vector<std::size_t> sizes;
    for (auto& batch : blocking(loader)) {
        sizes.push_back(batch.size());
        BOOST_TEST(batch.data().size() == batch.size() * batch.layout().bytes());
        BOOST_TEST(batch.targets().size() == batch.size());
        BOOST_TEST(batch.indices().size() == batch.size());
    }
    BOOST_TEST(sizes == (std::vector<std::size_t>{7, 7, 7, 7, 7, 7, 7, 7, 4}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_moved_batch_is_given_back_once) {
    Loaded loaded;
    DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, {.batch_size = 2, .prefetch_depth = 1}};
    auto pass = loader.epoch(0);
    Batch first = std::move(*pass.next_blocking());
    Batch second = std::move(*pass.next_blocking());
    first = std::move(second);
    BOOST_TEST(first.number() == 1u);
    Batch third = std::move(*pass.next_blocking());
    BOOST_TEST(third.number() == 2u);
    BOOST_TEST(loaded.source.fault(first, 0) == "");
    first.reset();
    first.reset();
    BOOST_TEST(pass.next_blocking()->number() == 3u);
}

/// What a child process writes to stderr until it ends, and the signal that ends it, or 0.
template <class Work>
std::pair<std::string, int> ended_by(Work work) {
    int ends[2];
    BOOST_REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        std::signal(SIGABRT, SIG_DFL);
        ::dup2(ends[1], STDERR_FILENO);
        try {
            work();
        } catch (...) {
            ::_exit(2);
        }
        ::_exit(0);
    }
    ::close(ends[1]);
    std::string text;
    char buffer[512];
    for (ssize_t got; (got = ::read(ends[0], buffer, sizeof buffer)) > 0;)
        text.append(buffer, static_cast<std::size_t>(got));
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    return {text, WIFSIGNALED(status) ? WTERMSIG(status) : 0};
}

BOOST_AUTO_TEST_CASE(a_batch_given_back_twice_ends_the_program_with_a_sentence_however_late) {
    for (const int draws_between : {0, 1, 5}) {
        Loaded loaded;
        DataLoader loader{loaded.runtime, loaded.source, loaded.sampler, {.batch_size = 4, .num_workers = 0}};
        auto pass = loader.epoch(0);
        auto batch = pass.next_blocking();
        const auto [text, signal] = ended_by([&] {
            alignas(Batch) std::byte copy[sizeof(Batch)];
            std::memcpy(copy, static_cast<const void*>(&*batch), sizeof copy);
            batch.reset();
            for (int i = 0; i < draws_between; ++i)
                (void)pass.next_blocking();
            reinterpret_cast<Batch*>(copy)->reset();
        });
        BOOST_TEST(signal == SIGABRT);
        BOOST_TEST(text.find("given back twice") != std::string::npos, text);
    }
}

BOOST_AUTO_TEST_CASE(batch_memory_that_cannot_be_had_fails_the_batch) {
    Loaded loaded;
    const NumberedSource huge{4, std::size_t{1} << 57};
    const SequentialSampler sampler{4};
    DataLoader loader{loaded.runtime, huge, sampler, {.batch_size = 2}};
    auto pass = loader.epoch(0);
    BOOST_CHECK_THROW((void)pass.next_blocking(), SampleError);
    BOOST_CHECK_THROW((void)pass.next_blocking(), SampleError);
    BOOST_TEST(!pass.next_blocking().has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
