// state() and restore(): whatever is interrupted, wherever, the batches drawn are those of a run that never was.
#include <drawpoint/pipeline/loader/data_loader.hpp>

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <drawpoint/pipeline/loader/core/detail/batch_digest.hpp>

#include "pipeline/loader/core/loader_state.hpp"
#include "pipeline/loader/loader_bench.hpp"
#include "pipeline/loader/numbered_source.hpp"
#include "support/coro_test.hpp"
#include "support/temporary_folder.hpp"

namespace drawpoint {
namespace {

using test::Bench;
using test::NumberedSource;
using test::says;

/// A sampler without parts.
class Whole final : public Sampler {
public:
    explicit Whole(const Sampler& of) : of_{&of} {}
    std::size_t size() const noexcept override { return of_->size(); }
    void order(std::size_t epoch, std::span<std::uint64_t> order) const override { of_->order(epoch, order); }

private:
    const Sampler* of_;
};

std::uint64_t digest_of(const Batch& batch) {
    BatchDigest digest;
    digest.add(std::as_bytes(batch.indices()));
    digest.add(std::as_bytes(batch.targets()));
    digest.add(batch.data());
    return digest.value();
}

constexpr std::uint64_t seed = 5;

struct Configuration {
    std::size_t samples, batch_size;
    bool drop_last, has_parts;
};

/// How one process of a chain loads.
struct Process {
    std::size_t workers = 1, depth = 2;
    OrderRule order{};
    bool next_epoch = true;
};

/// The digests of all batches of an epoch, by number.
using Epoch = std::map<std::size_t, std::uint64_t>;

class Chain {
public:
    explicit Chain(const Configuration& configuration)
        : configuration_{configuration}, source_{configuration.samples}, random_{configuration.samples, 3} {}

    [[nodiscard]] std::vector<Epoch> straight(std::size_t epochs) {
        std::vector<Epoch> all(epochs);
        Bench bench;
        DataLoader loader = make(bench, {.workers = 0});
        for (std::size_t e = 0; e < epochs; ++e) {
            auto pass = loader.epoch(e);
            while (const auto batch = pass.next_blocking())
                all[e][batch->number()] = digest_of(*batch);
        }
        return all;
    }

    /// Goes on from `state` (empty: from the beginning) for `draws` batches, adds what it draws to `seen`, and returns
    /// the state after that. Says in `fault` what was wrong first.
    std::string draw(const std::string& state, std::size_t draws, std::size_t epochs, const Process& process,
                     std::vector<Epoch>& seen, std::string& fault) {
        Bench bench;
        DataLoader loader = make(bench, process);
        std::size_t epoch = 0;
        if (!state.empty()) {
            loader.restore(state);
            if (loader.state() != state && process.order == OrderRule::in_order())
                fault = "restore changes the state";
            epoch = parse_state(state).epoch;
        }
        for (; epoch < epochs; ++epoch) {
            auto pass = loader.epoch(epoch, {.next_epoch = process.next_epoch && epoch + 1 < epochs});
            for (;;) {
                if (draws == 0)
                    return loader.state();
                const auto batch = pass.next_blocking();
                if (!batch)
                    break;
                --draws;
                if (!seen[epoch].emplace(batch->number(), digest_of(*batch)).second)
                    fault = "batch " + std::to_string(batch->number()) + " again";
                if (source_.fault(*batch, seed) != "")
                    fault = source_.fault(*batch, seed);
            }
            if (pass.drawn() != loader.batches_per_epoch())
                fault = "drawn() is " + std::to_string(pass.drawn());
        }
        return loader.state();
    }

private:
    DataLoader make(Bench& bench, const Process& process) {
        return DataLoader{bench.runtime,
                          source_,
                          configuration_.has_parts ? static_cast<const Sampler&>(weighted_) : whole_,
                          {.batch_size = configuration_.batch_size,
                           .num_workers = process.workers,
                           .prefetch_depth = process.depth,
                           .seed = seed,
                           .drop_last = configuration_.drop_last,
                           .order = process.order}};
    }

    Configuration configuration_;
    NumberedSource source_;
    RandomSampler random_;
    Whole whole_{random_};
    // Has parts at any size; draws samples more than once.
    std::vector<double> weights_ = std::vector<double>(configuration_.samples, 1.0);
    WeightedSampler weighted_{weights_, configuration_.samples, 3};
};

BOOST_AUTO_TEST_SUITE(data_loader_state)

BOOST_AUTO_TEST_CASE(restored_at_every_batch_of_three_epochs_and_chained_three_times_the_batches_are_the_same) {
    constexpr std::size_t epochs = 3;
    std::mt19937_64 random{20};
    std::size_t restores = 0;
    for (std::size_t c = 0; c < 50; ++c) {
        const Configuration configuration{.samples = 1 + random() % 30,
                                          .batch_size = 1 + random() % 6,
                                          .drop_last = random() % 2 == 0,
                                          .has_parts = random() % 2 == 0};
        Chain chain{configuration};
        const std::vector<Epoch> straight = chain.straight(epochs);
        const std::size_t batches = straight[0].size();
        const auto any_process = [&] {
            return Process{.workers = random() % 3,
                           .depth = 1 + random() % 4,
                           .order = random() % 3 == 0 ? OrderRule::out_of_order() : OrderRule::in_order(),
                           .next_epoch = random() % 2 == 0};
        };
        for (std::size_t at = 0; at <= epochs * batches; ++at) {
            std::vector<Epoch> seen(epochs);
            std::string fault, state = chain.draw("", at, epochs, any_process(), seen, fault);
            BOOST_TEST(state.size() <= 256u);
            for (int link = 0; link < 2; ++link, ++restores)
                state = chain.draw(state, random() % (batches + 2), epochs, any_process(), seen, fault);
            chain.draw(state, epochs * batches, epochs, any_process(), seen, fault);
            ++restores;
            BOOST_TEST(fault == "", "configuration " << c << ", at " << at << ": " << fault);
            BOOST_TEST((seen == straight), "configuration " << c << ", at " << at);
        }
    }
    BOOST_TEST_MESSAGE("restores: " << restores);
}

BOOST_AUTO_TEST_CASE(batches_drawn_out_of_order_are_drawn_once_over_any_chain) {
    std::mt19937_64 random{21};
    const Configuration configuration{.samples = 203, .batch_size = 2, .drop_last = false, .has_parts = false};
    Chain chain{configuration};
    const std::vector<Epoch> straight = chain.straight(1);
    for (int round = 0; round < 60; ++round) {
        std::vector<Epoch> seen(1);
        std::string fault, state;
        for (int link = 0; link < 12; ++link) {
            state = chain.draw(state, random() % 20, 1,
                               {.workers = 1 + random() % 4,
                                .depth = 1 + random() % 20,
                                .order = random() % 2 == 0 ? OrderRule::out_of_order() : OrderRule::bounded(3)},
                               seen, fault);
            BOOST_TEST(state.size() <= 256u);
        }
        chain.draw(state, 1000, 1, {.workers = random() % 2}, seen, fault);
        BOOST_TEST(fault == "");
        BOOST_TEST((seen == straight));
    }
}

BOOST_AUTO_TEST_CASE(an_order_given_during_a_pass_is_followed_by_the_state) {
    Bench bench;
    const NumberedSource source{60};
    const SequentialSampler sampler{60};
    DataLoader loader{bench.runtime, source, sampler, {.num_workers = 2, .prefetch_depth = 3}};
    auto pass = loader.epoch(0, {.next_epoch = true});
    for (int i = 0; i < 7; ++i)
        (void)pass.next_blocking();
    loader.reconfigure({.order = OrderRule::out_of_order()});
    for (int i = 0; i < 5; ++i)
        (void)pass.next_blocking();
    const LoaderState state = parse_state(loader.state());
    BOOST_TEST(state.drawn() == 12u);
    BOOST_TEST(state.end == 12u);   // this pass still comes in order
}

BOOST_AUTO_TEST_CASE(other_ranks_and_another_batch_size_go_on_where_these_have_been) {
    constexpr std::size_t samples = 96;
    const NumberedSource source{samples};
    const RandomSampler random{samples, 8};
    std::vector<std::uint64_t> order(samples);
    random.order(2, order);
    for (const std::size_t batches : {0u, 1u, 3u, 6u, 12u}) {   // 8 samples on 2 ranks are 4 batches of 2 on each
        std::set<std::uint64_t> seen;
        std::string state;
        for (std::size_t rank = 0; rank < 2; ++rank) {
            Bench bench;
            const DistributedSampler share{random, rank, 2};
            DataLoader loader{bench.runtime, source, share, {.batch_size = 4, .seed = seed}};
            auto pass = loader.epoch(2);
            for (std::size_t i = 0; i < batches; ++i) {
                const auto batch = pass.next_blocking();
                for (const std::uint64_t index : batch->indices())
                    BOOST_TEST(seen.insert(index).second);
            }
            state = loader.state();
        }
        for (std::size_t rank = 0; rank < 4; ++rank) {
            Bench bench;
            const DistributedSampler share{random, rank, 4};
            DataLoader loader{bench.runtime, source, share, {.batch_size = 1, .seed = seed}};
            loader.restore(state);
            auto pass = loader.epoch(2);
            while (const auto batch = pass.next_blocking()) {
                BOOST_TEST(source.fault(*batch, seed) == "");
                BOOST_TEST(seen.insert(batch->indices()[0]).second);
            }
        }
        BOOST_TEST(seen.size() == samples);
    }

    Bench bench;
    const DistributedSampler share{random, 0, 2};
    DataLoader loader{bench.runtime, source, share, {.batch_size = 4}};
    auto pass = loader.epoch(0);
    (void)pass.next_blocking();
    const std::string state = loader.state();
    DataLoader other{bench.runtime, source, random, {.batch_size = 5}};
    BOOST_CHECK_EXCEPTION(other.restore(state), std::invalid_argument,
                          says("state of a loader: it is after 8 samples, which is not a whole number of batches of 5 "
                               "on ranks = 1"));
}

BOOST_AUTO_TEST_CASE(another_data_set_order_or_seed_is_refused_and_nothing_changes) {
    const test::TemporaryFolder folder;
    /// Samples with files.
    struct Files final : SampleSource {
        std::vector<std::string> paths;
        std::size_t size() const noexcept override { return paths.size(); }
        SampleLayout layout() const noexcept override { return {}; }
        std::vector<std::string> stages() const override { return {"none"}; }
        std::string path(std::uint64_t index) const override { return paths[index]; }
        std::unique_ptr<WorkerScratch> make_scratch() const override { return std::make_unique<WorkerScratch>(); }
        void fill(SampleTask& task, WorkerScratch&) const override { *task.target = 0; }
    };
    const auto files = [&](const std::string& in, const std::string& contents) {
        std::filesystem::create_directories(folder / in);
        Files source;
        for (int i = 0; i < 10; ++i) {
            source.paths.push_back(folder / in / (std::to_string(i) + ".jpg"));
            std::ofstream{source.paths.back()} << contents;
        }
        return source;
    };
    const Files cats = files("a/cats", "1234"), moved = files("b/cats", "1234"), dogs = files("a/dogs", "1234"),
                longer = files("c/cats", "12345");
    Bench bench;
    const RandomSampler sampler{10, 1}, other_seed{10, 2};
    const SequentialSampler sequence{10};
    DataLoader loader{bench.runtime, cats, sampler, {.batch_size = 2, .seed = 4}};
    {
        auto pass = loader.epoch(3);
        (void)pass.next_blocking();
    }
    const std::string state = loader.state();
    const auto restored = [&](const SampleSource& source, const Sampler& of,
                              const LoaderOptions& options) -> std::string {
        DataLoader here{bench.runtime, source, of, options};
        const std::string before = here.state();
        try {
            here.restore(state);
        } catch (const std::invalid_argument& error) {
            BOOST_TEST(here.state() == before);
            BOOST_TEST(here.epoch(0).next_blocking()->number() == 0u);
            return error.what();
        }
        return "";
    };
    const LoaderOptions same{.batch_size = 2, .seed = 4};
    BOOST_TEST(restored(cats, sampler, same) == "");
    BOOST_TEST(restored(moved, sampler, same) == "");
    BOOST_TEST(restored(dogs, sampler, same) == "state of a loader: of another data set");
    BOOST_TEST(restored(longer, sampler, same) == "state of a loader: of another data set");
    const std::string order = "state of a loader: of another order of samples (sampler, or its seed)";
    BOOST_TEST(restored(cats, other_seed, same) == order);
    BOOST_TEST(restored(cats, sequence, same) == order);
    BOOST_TEST(restored(cats, sampler, {.batch_size = 2, .seed = 5}) ==
               "state of a loader: its seed is 4, here it is 5");
    BOOST_TEST(restored(cats, sampler, {.batch_size = 2, .seed = 4, .drop_last = true}) ==
               "state of a loader: its drop_last is 0, here it is 1");
    BOOST_TEST(restored(cats, sampler, {.batch_size = 4, .seed = 4}) ==
               "state of a loader: it is after 2 samples, which is not a whole number of batches of 4 on ranks = 1");
}

BOOST_AUTO_TEST_CASE(the_next_pass_after_restore_is_of_its_epoch_or_a_later_one_and_a_pass_in_between_is_refused) {
    for (const std::size_t workers : {0u, 2u}) {
        Bench bench;
        const NumberedSource source{6};
        const RandomSampler sampler{6, 2};
        DataLoader loader{bench.runtime, source, sampler, {.batch_size = 2, .num_workers = workers}};
        auto pass = loader.epoch(5, {.next_epoch = true});
        (void)pass.next_blocking();
        const std::string state = loader.state();
        BOOST_CHECK_EXCEPTION(loader.restore(state), std::logic_error,
                              says("DataLoader::restore: the pass must be used up or destroyed first"));
        while (pass.next_blocking()) {
        }
        const std::string at_end = loader.state();
        loader.restore(state);   // what is prefetched of epoch 6 is abandoned
        BOOST_CHECK_EXCEPTION((void)loader.epoch(4), std::logic_error,
                              says("DataLoader::epoch: the loader was restored to epoch 5, got 4"));
        pass = loader.epoch(6);   // a later one leaves the rest out, as a pass that was cut short did
        BOOST_TEST(pass.drawn() == 0u);
        for (std::size_t number = 0; number < 3; ++number)
            BOOST_TEST(pass.next_blocking()->number() == number);
        BOOST_TEST(!pass.next_blocking().has_value());
        loader.restore(state);
        {
            const auto undrawn = loader.epoch(5);   // given up before its first draw
        }
        pass = loader.epoch(5);
        for (std::size_t number = 0; number < 3; ++number)
            BOOST_TEST(pass.next_blocking()->number() == number);
        BOOST_TEST(!pass.next_blocking().has_value());
        loader.restore(state);
        pass = loader.epoch(5);
        BOOST_TEST(pass.drawn() == 1u);
        BOOST_TEST(pass.size().value() == 3u);
        BOOST_TEST(pass.next_blocking()->number() == 1u);
        BOOST_TEST(pass.next_blocking()->number() == 2u);
        BOOST_TEST(!pass.next_blocking().has_value());
        pass = loader.epoch(5);   // again, and whole
        BOOST_TEST(pass.next_blocking()->number() == 0u);
        while (pass.next_blocking()) {
        }
        loader.restore(at_end);
        pass = loader.epoch(5);   // nothing is left of it
        BOOST_TEST(!pass.next_blocking().has_value());
        pass = loader.epoch(6);
        BOOST_TEST(pass.next_blocking()->epoch() == 6u);
        while (pass.next_blocking()) {
        }
        loader.restore(at_end);
        pass = loader.epoch(7);   // and any may follow
        BOOST_TEST(pass.next_blocking()->number() == 0u);
    }
}

BOOST_AUTO_TEST_CASE(a_position_in_the_pass_that_is_prefetched_already_is_gone_on_from) {
    const NumberedSource source{6};
    const RandomSampler parts{6, 2};
    const Whole whole{parts};
    for (const Sampler* sampler : {static_cast<const Sampler*>(&parts), static_cast<const Sampler*>(&whole)})
        for (const std::size_t workers : {0u, 2u}) {
            Bench bench;
            const LoaderOptions options{.batch_size = 2, .num_workers = workers};
            DataLoader other{bench.runtime, source, *sampler, options};
            auto begun = other.epoch(6);
            (void)begun.next_blocking();
            DataLoader loader{bench.runtime, source, *sampler, options};
            auto pass = loader.epoch(5, {.next_epoch = true});
            while (pass.next_blocking()) {
            }
            loader.restore(other.state());
            pass = loader.epoch(6);
            BOOST_TEST(pass.drawn() == 1u);
            BOOST_TEST(pass.next_blocking()->number() == 1u);
            BOOST_TEST(pass.next_blocking()->number() == 2u);
            BOOST_TEST(!pass.next_blocking().has_value());
        }
}

BOOST_AUTO_TEST_CASE(damaged_and_hostile_states_are_refused) {
    LoaderState state{.data = 1,
                      .order = 2,
                      .seed = ~std::uint64_t{0},
                      .batch_size = 64,
                      .drop_last = true,
                      .rank = 3,
                      .ranks = 1000,
                      .batches = 100'000'000,
                      .epoch = 90,
                      .end = 99'999'999};
    for (std::uint64_t i = 0; i < 56; ++i)
        state.undrawn.push_back(i * 1'785'714 + 7);
    const std::string bytes = to_bytes(state);
    BOOST_TEST(bytes.size() <= 256u);
    BOOST_TEST((parse_state(bytes) == state));
    for (std::size_t length = 0; length < bytes.size(); ++length)
        BOOST_CHECK_THROW((void)parse_state(std::string_view{bytes}.substr(0, length)), std::invalid_argument);
    for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
        std::string flipped = bytes;
        flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
        BOOST_CHECK_THROW((void)parse_state(flipped), std::invalid_argument);
    }
    BOOST_CHECK_EXCEPTION((void)parse_state("drawpoint\x02 and more"), std::invalid_argument,
                          says("state of a loader: of another version than 1, which this program reads"));
    // Rightly checksummed, but impossible.
    const auto refused = [](LoaderState wrong) {
        BOOST_CHECK_EXCEPTION((void)parse_state(to_bytes(wrong)), std::invalid_argument,
                              says("state of a loader: a number is out of range"));
    };
    const LoaderState small{.batches = 5, .end = 3, .undrawn = {0, 2}};
    BOOST_TEST((parse_state(to_bytes(small)) == small));
    refused({.batch_size = 0});
    refused({.batch_size = (1u << 20) + 1});
    refused({.rank = 1, .ranks = 1});
    refused({.batches = 5, .end = 6});
    refused({.batches = 5, .end = 3, .undrawn = {0, 3}});
    refused({.batches = 5, .end = 3, .undrawn = {1, ~std::uint64_t{0}}});
    refused({.batches = 500, .end = 300, .undrawn = std::vector<std::uint64_t>(57)});
}

BOOST_AUTO_TEST_CASE(what_is_behind_a_right_checksum_is_checked_too) {
    const auto with_checksum = [](std::string bytes) {
        BatchDigest digest;
        digest.add(std::as_bytes(std::span{bytes}));
        const std::uint64_t sum = digest.value();
        return bytes.append(reinterpret_cast<const char*>(&sum), sizeof sum);
    };
    const LoaderState state{
        .data = 1, .order = 2, .seed = 3, .batch_size = 16, .batches = 100, .epoch = 7, .end = 5, .undrawn = {}};
    const std::string bytes = to_bytes(state), covered = bytes.substr(0, bytes.size() - 8);
    BOOST_TEST((parse_state(with_checksum(covered)) == state));
    BOOST_CHECK_EXCEPTION((void)parse_state(with_checksum(covered + '\0')), std::invalid_argument,
                          says("state of a loader: too long"));
    const std::size_t epoch = covered.size() - 3;   // then end, and how many are undrawn
    BOOST_TEST_REQUIRE(covered[epoch] == 7);
    for (const char last : {'\1', '\2'}) {   // 2^64 - 1, and 2^64 + 2^63 - 1
        std::string large = covered;
        large.replace(epoch, 1, std::string(9, '\xff') + last);
        if (last == '\1')
            BOOST_TEST(parse_state(with_checksum(large)).epoch == ~std::uint64_t{0});
        else
            BOOST_CHECK_EXCEPTION((void)parse_state(with_checksum(large)), std::invalid_argument,
                                  says("state of a loader: a number does not fit 64 bits"));
    }
}

BOOST_AUTO_TEST_CASE(a_pass_of_which_older_batches_are_undrawn_is_not_over) {
    LoaderState from{.batch_size = 4, .batches = 10, .epoch = 2, .end = 10, .undrawn = {3}};
    BOOST_TEST((continued_by(from, {.batch_size = 4, .batches = 10, .undrawn = {}}) == from));
    BOOST_CHECK_THROW((void)continued_by(from, {.batch_size = 8, .batches = 5, .undrawn = {}}), std::invalid_argument);
    from.undrawn.clear();   // now it is, whatever the size of batches
    BOOST_TEST(continued_by(from, {.batch_size = 8, .batches = 5, .undrawn = {}}).end == 5u);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint
