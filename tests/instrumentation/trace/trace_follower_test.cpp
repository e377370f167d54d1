#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/recorder/loop_track.hpp>
#include <drawpoint/instrumentation/trace/live_recordings.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>
#include <drawpoint/instrumentation/trace/trace_follower.hpp>

#include "instrumentation/trace/recorded_run.hpp"
#include "instrumentation/trace/trace_block.hpp"

using namespace drawpoint;

namespace {

/// A recording in many blocks, and a second file that becomes it.
struct Growing {
    explicit Growing(std::uint64_t seed = 5) {
        TraceWriter writer{whole.path(), {.start_ns = 1000, .monotonic_ns = 5, .boottime_ns = 6, .realtime_ns = 7}};
        write(random_run(seed, 1000, {.train_batches = 24, .batch_size = 11}), writer, 100);
        content = test::bytes_in(whole.path());
        grow_to(0);
    }
    void grow_to(std::size_t size) {
        std::ofstream file{grown.path(), std::ios::binary | std::ios::app};
        file << content.substr(length, size - length);
        length = size;
    }
    /// Where each block begins, and the file's end.
    [[nodiscard]] std::vector<std::size_t> blocks() const {
        std::vector<std::size_t> begins;
        std::size_t at = 0;
        while (at < content.size()) {
            begins.push_back(at);
            const ParsedHeader parsed = parse_header(std::string_view{content}.substr(at, max_header_bytes), at);
            BOOST_REQUIRE(parsed.state == ParsedHeader::State::whole);
            at += parsed.length + parsed.header.bytes;
        }
        begins.push_back(at);
        return begins;
    }
    TemporaryFile whole, grown{"grown.pftrace"};
    std::string content;
    std::size_t length = 0;
};

void record_step(LoopTrack& track, std::uint32_t batch) {
    track.begin_step(Phase::train, 0, batch);
    track.mark(Span::starved);
    track.end_draw(4);
    track.mark(Span::forward);
    track.end_step(StepStatus::complete, std::nullopt);
    track.mark(Span::between);
}

BOOST_AUTO_TEST_SUITE(trace_follower)

BOOST_AUTO_TEST_CASE(however_a_file_grows_its_ledger_is_that_of_the_whole_file) {
    std::mt19937_64 random{1};
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        Growing file{seed};
        const auto blocks = file.blocks();
        BOOST_REQUIRE(blocks.size() > 8u);
        TraceFollower follower{file.grown.path()};
        BOOST_TEST(!follower.read());
        BOOST_TEST(follower.ledger().steps.empty());
        std::size_t steps = 0;
        while (file.length < file.content.size()) {
            file.grow_to(std::min(file.content.size(), file.length + 1 + random() % 5000));
            const auto begun = std::ranges::upper_bound(blocks, file.length) - blocks.begin() - 1;
            while (follower.read(1)) {
            }
            const TemporaryFile cut{"cut.pftrace"};   // at the last whole block
            std::ofstream{cut.path(), std::ios::binary}
                << file.content.substr(0, blocks[static_cast<std::size_t>(begun)]);
            if (begun > 0)
                BOOST_TEST((follower.ledger() == read_trace(cut.path()).ledger));
            BOOST_TEST(follower.warning().empty());
            BOOST_TEST(follower.rows().steps.size() >= steps);
            steps = follower.rows().steps.size();
        }
        BOOST_TEST((follower.ledger() == read_trace(file.whole.path()).ledger));
    }
}

BOOST_AUTO_TEST_CASE(damage_is_told_once_something_is_behind_it) {
    for (const std::size_t place : {3, 200}) {   // in the header; in the packets
        Growing damaged;
        const auto blocks = damaged.blocks();
        damaged.content[blocks[4] + place] ^= 1;
        TraceFollower follower{damaged.grown.path()};
        damaged.grow_to(blocks[5]);
        while (follower.read()) {
        }
        BOOST_TEST(follower.warning().empty(), "what ends the file may still be being written");
        damaged.grow_to(damaged.content.size());
        while (follower.read()) {
        }
        BOOST_TEST(follower.warning().find("damaged") != std::string::npos, follower.warning());
        BOOST_TEST((follower.ledger() == read_trace(damaged.grown.path()).ledger));
    }
}

BOOST_AUTO_TEST_CASE(what_a_killed_run_wrote_last_is_read_in_the_end) {
    Growing file;
    file.grow_to(file.content.size() - 100);
    TraceFollower follower{file.grown.path()};
    while (follower.read()) {
    }
    BOOST_TEST(follower.warning().empty());
    follower.read_rest();
    BOOST_TEST(follower.warning().find("cut at byte") != std::string::npos, follower.warning());
    BOOST_TEST((follower.ledger() == read_trace(file.grown.path()).ledger));
}

BOOST_AUTO_TEST_CASE(a_run_that_begins_a_new_file_at_its_limit_is_found_again) {
    const TemporaryFile file;
    Recorder recorder{file.path(), {.limit_bytes = 200'000}, AnyClock{SteadyClock{}}};
    LoopTrack track{recorder};
    track.begin_pass(PassKind::fit, 0);
    track.begin_pass(PassKind::train, 0);
    std::optional<LiveRecording> first;
    for (std::uint32_t i = 0; i < 200'000 && (!first || is_being_written(*first)); ++i) {
        record_step(track, i);
        if (i % 100 == 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
            if (!first)
                first = writer_of(file.path());
        }
    }
    BOOST_REQUIRE(first);
    BOOST_TEST(!is_being_written(*first));
    const auto next = live_recordings(::getpid());
    BOOST_REQUIRE(!next.empty());
    BOOST_TEST(next.front().inode != first->inode);
    TraceFollower follower{next.front().path};
    while (follower.read()) {
    }
    BOOST_TEST(follower.rows().folded.steps > 0u);   // it begins with the totals
}

BOOST_AUTO_TEST_CASE(what_is_no_recording_is_refused) {
    const TemporaryFile file;
    BOOST_CHECK_THROW(TraceFollower{file.path()}, std::system_error);
    std::ofstream{file.path()} << "this is not a recording, however long it may be, and it is long";
    TraceFollower follower{file.path()};
    BOOST_CHECK_EXCEPTION(follower.read(), TraceError, [&](const TraceError& error) {
        return std::string{error.what()}.find(file.path().string()) != std::string::npos;
    });
    BOOST_CHECK_THROW(TraceFollower{file.path().parent_path()}, std::system_error);
}

BOOST_AUTO_TEST_CASE(memory_is_bounded_and_totals_are_exact) {
    Growing file;
    const Ledger whole = read_trace(file.whole.path()).ledger;
    TraceFollower follower{file.grown.path(), 20'000};
    for (const std::size_t end : file.blocks()) {
        file.grow_to(end);
        while (follower.read()) {
        }
    }
    const Ledger followed = follower.ledger();
    BOOST_TEST(followed.folded.steps > 0u);
    BOOST_TEST(followed.steps.size() + followed.folded.steps == whole.steps.size());
    BOOST_TEST((followed == read_trace(file.whole.path(), 20'000).ledger));
}

BOOST_AUTO_TEST_CASE(a_pass_that_has_not_ended_is_whole_though_its_old_steps_are_folded) {
    const TemporaryFile file;
    {
        Recorder recorder{file.path(), {}, AnyClock{SteadyClock{}}};
        LoopTrack track{recorder};
        for (const PassKind kind : {PassKind::fit, PassKind::epoch, PassKind::train})
            track.begin_pass(kind, 0);
        for (std::uint32_t i = 0; i < 2000; ++i) {
            record_step(track, i);
        }
    }
    for (const std::uint64_t most_bytes : {0u, 50'000u}) {
        const Ledger read = read_trace(file.path(), most_bytes).ledger;
        BOOST_TEST(!read.passes.back().ended);
        BOOST_TEST((read.folded.steps > 1000u) == (most_bytes != 0));
        BOOST_TEST(max_residual_ns(read) == 0);
    }
}

BOOST_AUTO_TEST_CASE(a_recording_that_is_being_written_is_found_and_followed) {
    const TemporaryFile file;
    const auto is_of_file = [&](const LiveRecording& live) {
        return live.inode == [&] {
            struct stat status{};
            return ::stat(file.path().c_str(), &status) == 0 ? status.st_ino : 0;
        }();
    };
    std::optional<LiveRecording> writer;
    {
        Recorder recorder{file.path(), {}, AnyClock{SteadyClock{}}};
        recorder.set_fact("a", "1");
        for (int i = 0; i < 500 && !writer; ++i) {   // until the first block is there
            writer = writer_of(file.path());
            std::this_thread::sleep_for(std::chrono::milliseconds{10});
        }
        BOOST_REQUIRE(writer);
        BOOST_TEST(writer->pid == ::getpid());
        BOOST_TEST(is_being_written(*writer));
        for (const auto& all : {live_recordings(), live_recordings(::getpid())})
            BOOST_TEST(std::ranges::count_if(all, is_of_file) == 1);
        TraceFollower follower{writer->path};
        for (int i = 0; i < 500 && follower.rows().facts.empty(); ++i) {   // the next block has the fact
            (void)follower.read();
            std::this_thread::sleep_for(std::chrono::milliseconds{10});
        }
        BOOST_TEST((follower.ledger().fact("a") == "1"));
        // The file is the one that the process has open, whatever has its name.
        std::filesystem::rename(file.path(), file.path().string() + ".moved");
        BOOST_TEST(is_being_written(*writer));
        BOOST_TEST(!writer_of(file.path()));
    }
    BOOST_TEST(!is_being_written(*writer));
    BOOST_TEST(std::ranges::count_if(live_recordings(::getpid()), is_of_file) == 0);
    BOOST_TEST(live_recordings(1 << 30).empty());
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
