#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <latch>
#include <map>
#include <random>
#include <set>
#include <thread>

#include <boost/test/unit_test.hpp>

#include <drawpoint/instrumentation/recorder/loop_track.hpp>
#include <drawpoint/instrumentation/recorder/region.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>

#include "instrumentation/trace/allocations.hpp"
#include "instrumentation/trace/recorded_run.hpp"

using namespace drawpoint;
using namespace std::chrono_literals;

namespace {

/// A recorder that writes a file and uses the test's clock.
struct Recording {
    explicit Recording(const RecorderOptions& options = {}) : recorder{file.path(), options, AnyClock{clock}} {}

    std::uint32_t begin(std::string_view name) {
        clock.advance(10ns);
        return recorder.begin_operator({.name = recorder.add_name(name)});
    }
    void end(std::uint32_t ticket) {
        clock.advance(10ns);
        recorder.end_operator(ticket);
    }
    /// Finishes, and returns the ledger, which must equal the file's.
    Ledger finished() {
        recorder.finish();
        Ledger live = recorder.ledger();
        const ReadTrace read = read_trace(file.path());
        BOOST_TEST(read.warning == "");
        BOOST_TEST((read.ledger == live));
        BOOST_TEST(live.dropped_records() == recorder.state().dropped);
        return live;
    }

    TemporaryFile file;
    ManualClock clock{1000};
    Recorder recorder;
};

/// "name[begin,end)", with a "?" if its end was not recorded.
std::string text_of(const Ledger& ledger, const OperatorRow& row) {
    return ledger.names[row.name] + "[" + std::to_string(row.begin_ns) + "," + std::to_string(row.begin_ns + row.ns) +
           (row.ended ? ")" : "?");
}

std::string text_of(const Ledger& ledger) {
    std::string text;
    for (const OperatorRow& row : ledger.operators)
        text += (text.empty() ? "" : " ") + text_of(ledger, row);
    return text;
}

/// Whether no two calls of a thread overlap partially.
bool nests(const Ledger& ledger) {
    std::map<std::uint32_t, std::vector<std::int64_t>> open;   // per thread: ends of the open calls
    for (const OperatorRow& row : ledger.operators) {
        std::vector<std::int64_t>& ends = open[row.thread];
        while (!ends.empty() && ends.back() <= row.begin_ns)
            ends.pop_back();
        if (!ends.empty() && row.begin_ns + row.ns > ends.back())
            return false;
        ends.push_back(row.begin_ns + row.ns);
    }
    return true;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(operators_recording)

BOOST_AUTO_TEST_CASE(an_operator_keeps_all_that_is_known_of_it) {
    Recording run;
    Recorder& recorder = run.recorder;
    const std::uint32_t name = recorder.add_name("aten::conv2d"), shapes = recorder.add_name("[[8, 3]]"),
                        file = recorder.add_name("model.cpp"),
                        frame = recorder.add_frame({.function = name, .file = file, .line = 7}),
                        outer = recorder.add_stack({.frame = frame}),
                        stack = recorder.add_stack({.parent = outer, .frame = frame});
    const std::uint32_t ticket = recorder.begin_operator({.kind = OperatorKind::cpu_op,
                                                          .name = name,
                                                          .shapes = shapes,
                                                          .stack = stack,
                                                          .sequence = 0,
                                                          .forward_thread = 3,
                                                          .flops = 99});
    run.end(ticket);
    recorder.push(AllocationRow{1'020, 77, 1, -512, 0xffff'8000'0000'0000, 1024});
    recorder.push(StackSampleRow{1'030, 0, stack, 10'000});
    const Ledger ledger = run.finished();
    BOOST_TEST_REQUIRE(ledger.threads.size() == 1u);
    BOOST_TEST(ledger.threads[0].tid == static_cast<std::uint64_t>(::gettid()));
    BOOST_TEST(ledger.threads[0].device == -1);
    BOOST_TEST_REQUIRE(ledger.operators.size() == 1u);
    BOOST_TEST((ledger.operators[0] == OperatorRow{.kind = OperatorKind::cpu_op,
                                                   .name = name,
                                                   .shapes = shapes,
                                                   .stack = stack,
                                                   .begin_ns = 1000,
                                                   .ns = 10,
                                                   .sequence = 0,
                                                   .forward_thread = 3,
                                                   .flops = 99}));
    BOOST_TEST((ledger.allocations == std::vector{AllocationRow{1'020, 0, 1, -512, 0xffff'8000'0000'0000, 1024}}));
    BOOST_TEST((ledger.stack_samples == std::vector{StackSampleRow{1'030, 0, stack, 10'000}}));
    BOOST_TEST((ledger.frames == std::vector{FrameRow{name, file, 7}}));
    BOOST_TEST((ledger.stacks == std::vector{StackRow{nothing, frame}, StackRow{outer, frame}}));
}

BOOST_AUTO_TEST_CASE(a_region_is_recorded_from_its_construction_to_its_destruction) {
    Recording run;
    {
        const Region outer = profile_region(run.recorder, "outer");
        run.clock.advance(5ns);
        {
            const Region inner = profile_region(run.recorder, "inner");
            run.clock.advance(7ns);
        }
        run.clock.advance(1ns);
    }
    const Ledger ledger = run.finished();
    BOOST_TEST(text_of(ledger) == "outer[1000,1013) inner[1005,1012)");
    BOOST_TEST((ledger.operators[0].kind == OperatorKind::user_annotation));
}

BOOST_AUTO_TEST_CASE(the_end_of_an_operator_ends_what_it_left_open) {
    Recording run;
    const std::uint32_t outer = run.begin("outer");
    run.begin("lost");
    run.begin("lost too");
    run.end(outer);
    run.end(run.begin("next"));
    BOOST_TEST(text_of(run.finished()) == "outer[1010,1040) lost[1020,1040? lost too[1030,1040? next[1050,1060)");
}

BOOST_AUTO_TEST_CASE(an_end_without_its_begin_ends_nothing) {
    Recording run;
    const std::uint32_t outer = run.begin("outer"), inner = run.begin("inner");
    run.end(inner);
    run.end(inner);       // ended twice
    run.end(0);           // for a begin that was not recorded
    run.end(inner + 1);   // for no begin
    run.end(outer);
    BOOST_TEST(text_of(run.finished()) == "outer[1010,1070) inner[1020,1030)");
}

BOOST_AUTO_TEST_CASE(an_end_on_another_thread_ends_nothing) {
    Recording run;
    const std::uint32_t here = run.begin("here");
    std::thread{[&] {
        const std::uint32_t there = run.begin("there");
        run.end(here);
        run.end(there);
    }}.join();
    run.end(here);
    BOOST_TEST(text_of(run.finished()) == "here[1010,1050) there[1020,1040)");
}

BOOST_AUTO_TEST_CASE(what_is_open_when_the_ledger_is_made_ends_at_the_last_time_reached) {
    Recording run;
    run.begin("outer");
    run.end(run.begin("inner"));
    BOOST_TEST(text_of(run.recorder.ledger()) == "outer[1010,1030? inner[1020,1030)");
    run.begin("last");
    BOOST_TEST(text_of(run.finished()) == "outer[1010,1040? inner[1020,1030) last[1040,1040?");
}

BOOST_AUTO_TEST_CASE(lost_records_neither_shift_nor_tangle_what_is_kept) {
    Recording run{{.ring_records = 64}};
    constexpr std::uint32_t count = 20'000;
    std::mt19937 random{3};
    std::vector<std::uint32_t> open, names;
    for (const char* name : {"a", "b", "c", "d"})
        names.push_back(run.recorder.add_name(name));
    std::map<std::int64_t, std::pair<std::uint32_t, std::int64_t>> made;   // begin -> name, end
    std::vector<std::int64_t> begins;
    for (std::uint32_t begun = 0; begun < count || !open.empty();) {
        run.clock.advance(1ns);
        if (begun < count && (open.empty() || (open.size() < 6 && random() % 2 == 0))) {
            const std::uint32_t name = names[random() % names.size()];
            begins.push_back(run.clock.now_ns());
            made[begins.back()].first = name;
            open.push_back(run.recorder.begin_operator({.name = name}));
            ++begun;
        } else {
            made[begins.back()].second = run.clock.now_ns();
            run.recorder.end_operator(open.back());
            open.pop_back(), begins.pop_back();
        }
    }
    const Ledger ledger = run.finished();
    BOOST_TEST(ledger.dropped_records() > 0u);
    BOOST_TEST(ledger.operators.size() < count);
    BOOST_TEST(ledger.operators.size() + ledger.dropped_records() >= count);
    BOOST_TEST(nests(ledger));
    for (const OperatorRow& row : ledger.operators) {
        const auto& [name, end_ns] = made.at(row.begin_ns);
        BOOST_TEST_REQUIRE(row.name == name);
        BOOST_TEST_REQUIRE((!row.ended || row.begin_ns + row.ns == end_ns));
    }
    for (const DroppedRow& row : ledger.dropped)
        BOOST_TEST(row.ring == first_operator_ring);
}

BOOST_AUTO_TEST_CASE(threads_record_while_ledgers_are_taken) {
    const TemporaryFile file;
    Recorder recorder{file.path(), {.ring_records = 1024}};
    constexpr std::uint32_t threads = 4, rounds = 300;
    std::atomic<std::uint32_t> running = threads;
    std::vector<std::thread> crew;
    for (std::uint32_t t = 0; t < threads; ++t)
        crew.emplace_back([&, t] {
            recorder.add_this_thread("thread " + std::to_string(t));
            for (std::uint32_t i = 0; i < rounds; ++i) {
                const Region outer = profile_region(recorder, "round " + std::to_string(i % 50));
                const std::uint32_t frame = recorder.add_frame({.function = recorder.add_name("f"), .line = i % 20}),
                                    stack = recorder.add_stack({.frame = frame});
                const Region inner = profile_region(recorder, "inner");
                recorder.push(AllocationRow{recorder.now_ns(), 0, -1, 64, i, 0});
                recorder.push(StackSampleRow{recorder.now_ns(), 0, stack, 1});
                if (i % 16 == 0)
                    (void)recorder.ledger();   // lets the writer keep up
            }
            --running;
        });
    while (running != 0) {
        const Ledger ledger = recorder.ledger();
        BOOST_TEST_REQUIRE(nests(ledger));
    }
    for (std::thread& thread : crew)
        thread.join();
    recorder.finish();
    const Ledger ledger = recorder.ledger();
    BOOST_TEST(ledger.dropped_records() == 0u);
    BOOST_TEST(ledger.operators.size() == 2 * threads * rounds);
    BOOST_TEST(ledger.allocations.size() == threads * rounds);
    BOOST_TEST(ledger.stack_samples.size() == threads * rounds);
    BOOST_TEST(ledger.names.size() == 52u);
    BOOST_TEST(ledger.frames.size() == 20u);
    BOOST_TEST(ledger.stacks.size() == 20u);
    BOOST_TEST(
        std::all_of(ledger.operators.begin(), ledger.operators.end(), [](const auto& row) { return row.ended; }));
    BOOST_TEST(nests(ledger));
    std::set<std::string> names;
    for (const ThreadRow& row : ledger.threads)
        names.insert(row.name);
    BOOST_TEST((names == std::set<std::string>{"thread 0", "thread 1", "thread 2", "thread 3"}));
    BOOST_TEST((read_trace(file.path()).ledger == ledger));
}

BOOST_AUTO_TEST_CASE(a_cut_file_never_names_what_it_does_not_hold) {
    Recording run;
    for (int i = 0; i < 400; ++i) {
        const std::uint32_t name = run.recorder.add_name("operator " + std::to_string(i)),
                            stack = run.recorder.add_stack({.frame = run.recorder.add_frame({.function = name})});
        run.end(run.recorder.begin_operator({.name = name, .stack = stack}));
        if (i % 100 == 99)
            (void)run.recorder.ledger();   // splits the definitions over several rounds of the writer
    }
    const Ledger whole = run.finished();
    BOOST_TEST(whole.operators.size() == 400u);
    std::size_t most = 0;
    for (auto size = std::filesystem::file_size(run.file.path()); size > 0;
         size -= std::min<std::uintmax_t>(size, 17)) {
        std::filesystem::resize_file(run.file.path(), size);
        const ReadTrace read = read_trace(run.file.path());
        BOOST_TEST_REQUIRE(!read.damaged, read.warning);
        BOOST_TEST_REQUIRE(is_part_of(read.ledger, whole));
        most = std::max(most, read.ledger.operators.size());
    }
    BOOST_TEST(most == 400u);
}

BOOST_AUTO_TEST_CASE(a_file_whose_numbers_point_outside_is_refused_there) {
    const OperatorRow good{.name = 0, .thread = 0};
    const Definitions definitions{
        .names = {"a"}, .threads = {{1, "t"}}, .frames = {{.function = 0}}, .stacks = {{nothing, 0}}};
    const auto damaged = [&](auto&& write_bad) {
        const TemporaryFile file;
        {
            TraceWriter writer{file.path(), {}};
            writer.definitions(definitions);
            writer.operator_begin(good);
            write_bad(writer);
            writer.close();
        }
        const ReadTrace read = read_trace(file.path());
        BOOST_TEST(read.ledger.operators.size() == 1u);
        BOOST_TEST((!read.damaged || read.warning.find("names what the file does not hold") != std::string::npos));
        return read.damaged;
    };
    BOOST_TEST(!damaged([](TraceWriter&) {}));
    BOOST_TEST(damaged([](TraceWriter& writer) { writer.operator_begin({.shapes = 1}); }));
    BOOST_TEST(damaged([](TraceWriter& writer) { writer.operator_begin({.stack = 1}); }));
    BOOST_TEST(damaged([](TraceWriter& writer) { writer.allocation({.thread = 1}); }));
    BOOST_TEST(damaged([&](TraceWriter& writer) { writer.definitions({{}, {}, {{.function = 1}}, {}}); }));
    BOOST_TEST(damaged([&](TraceWriter& writer) { writer.definitions({{}, {}, {{.function = 0, .file = 1}}, {}}); }));
    BOOST_TEST(damaged([&](TraceWriter& writer) { writer.definitions({{}, {}, {}, {{nothing, 1}}}); }));
    // a stack that is its own parent
    BOOST_TEST(damaged([&](TraceWriter& writer) { writer.definitions({{}, {}, {}, {{1, 0}}}); }));
}

BOOST_AUTO_TEST_CASE(what_names_something_never_added_is_dropped_and_counted) {
    Recording run;
    Recorder& recorder = run.recorder;
    const std::uint32_t name = recorder.add_name("f");
    BOOST_TEST(recorder.add_frame({.function = name + 1}) == nothing);
    BOOST_TEST(recorder.add_frame({.function = name, .file = name + 1}) == nothing);
    BOOST_TEST(recorder.add_frame({.function = nothing}) == nothing);
    const std::uint32_t frame = recorder.add_frame({.function = name});
    BOOST_TEST(recorder.add_stack({.frame = frame + 1}) == nothing);
    BOOST_TEST(recorder.add_stack({.parent = 0, .frame = frame}) == nothing);
    const std::uint32_t stack = recorder.add_stack({.frame = frame});
    const std::uint32_t outer = run.begin("outer");
    for (const OperatorBegin& bad : {OperatorBegin{.name = 2}, OperatorBegin{.name = nothing},
                                     OperatorBegin{.name = name, .shapes = 2}, OperatorBegin{.name = name, .stack = 1}})
        run.end(recorder.begin_operator(bad));
    recorder.push(StackSampleRow{1, 1, stack, 1});
    recorder.push(StackSampleRow{1, 0, stack + 1, 1});
    run.end(outer);
    const Ledger ledger = run.finished();
    BOOST_TEST(text_of(ledger) == "outer[1010,1060)");
    BOOST_TEST(ledger.stack_samples.empty());
    BOOST_TEST(ledger.dropped_records() == 6u);
}

BOOST_AUTO_TEST_CASE(equal_definitions_have_one_position_and_a_thread_its_last_name) {
    Recording run;
    Recorder& recorder = run.recorder;
    BOOST_TEST(recorder.add_name("a") == 0u);
    BOOST_TEST(recorder.add_name("b") == 1u);
    BOOST_TEST(recorder.add_name("a") == 0u);
    BOOST_TEST(recorder.add_name("") == 2u);
    BOOST_TEST(recorder.add_frame({0, 1, 5}) == 0u);
    BOOST_TEST(recorder.add_frame({0, nothing, 5}) == 1u);
    BOOST_TEST(recorder.add_frame({0, 1, 5}) == 0u);
    BOOST_TEST(recorder.add_stack({nothing, 0}) == 0u);
    BOOST_TEST(recorder.add_stack({0, 0}) == 1u);
    BOOST_TEST(recorder.add_stack({nothing, 0}) == 0u);
    BOOST_TEST(recorder.add_thread({7, "first"}) == 0u);
    BOOST_TEST(recorder.add_thread({7, "of a device", 0}) == 1u);
    (void)recorder.ledger();   // now the first name is in the file
    BOOST_TEST(recorder.add_thread({7, ""}) == 0u);
    BOOST_TEST(recorder.add_thread({7, "last"}) == 0u);
    const Ledger ledger = run.finished();
    BOOST_TEST((ledger.names == std::vector<std::string>{"a", "b", ""}));
    BOOST_TEST((ledger.threads == std::vector<ThreadRow>{{7, "last", -1}, {7, "of a device", 0}}));
}

BOOST_AUTO_TEST_CASE(a_thread_has_the_name_that_was_given_to_it_else_the_system_s) {
    Recording run;
    std::thread{[&] {
        ::pthread_setname_np(::pthread_self(), "of the system");
        run.end(run.begin("a"));
    }}.join();
    std::thread{[&] {
        ::pthread_setname_np(::pthread_self(), "of the system");
        run.recorder.add_this_thread("given");
        run.end(run.begin("a"));
    }}.join();
    const LoopTrack loop{run.recorder};
    const Ledger ledger = run.finished();
    BOOST_TEST_REQUIRE(ledger.threads.size() == 3u);
    BOOST_TEST(ledger.threads[0].name == "of the system");
    BOOST_TEST(ledger.threads[1].name == "given");
    BOOST_TEST(ledger.threads[2].name == "loop");
    BOOST_TEST(ledger.threads[2].tid == static_cast<std::uint64_t>(::gettid()));
    BOOST_TEST(ledger.operators[0].thread == 0u);
    BOOST_TEST(ledger.operators[1].thread == 1u);
}

BOOST_AUTO_TEST_CASE(a_thread_that_takes_over_a_dead_thread_s_handle_begins_anew) {
    Recording run;
    // The system usually gives a handle to the next thread; a thread with another handle proves nothing.
    bool taken_over = false;
    for (int attempt = 0; attempt < 100 && !taken_over; ++attempt) {
        pthread_t dead{}, next{};
        std::uint64_t dead_tid = 0;
        std::thread{[&] {
            dead = ::pthread_self(), dead_tid = static_cast<std::uint64_t>(::gettid());
            run.begin("left open");
        }}.join();
        std::thread{[&] {
            next = ::pthread_self();
            run.end(run.begin("new"));
        }}.join();
        taken_over = dead == next;
        const Ledger ledger = run.recorder.ledger();
        const auto left = std::find_if(ledger.operators.rbegin(), ledger.operators.rend(), [&](const OperatorRow& row) {
            return ledger.threads[row.thread].tid == dead_tid;
        });
        BOOST_TEST_REQUIRE((left != ledger.operators.rend()));
        BOOST_TEST(ledger.names[left->name] == "left open");
        BOOST_TEST(!left->ended);
        if (taken_over)
            BOOST_TEST(left->ns == 10);   // ends at the next thread's begin
        const auto made = std::find_if(ledger.operators.begin(), ledger.operators.end(), [&](const OperatorRow& row) {
            return row.ended && row.begin_ns > left->begin_ns;
        });
        BOOST_TEST_REQUIRE((made != ledger.operators.end()));
        BOOST_TEST(made->thread != left->thread);
        BOOST_TEST(made->ns == 10);
    }
    BOOST_TEST(taken_over);
    (void)run.finished();
}

BOOST_AUTO_TEST_CASE(threads_beyond_the_table_are_counted_and_the_others_go_on) {
    Recording run{{.ring_records = 64}};
    constexpr std::uint32_t threads = 520, most = 512;
    std::latch all{threads};
    std::vector<std::thread> crew;
    for (std::uint32_t t = 0; t < threads; ++t)
        crew.emplace_back([&] {
            const std::uint32_t ticket = run.recorder.begin_operator({.name = run.recorder.add_name("a")});
            all.arrive_and_wait();   // all are alive, so no two have the same handle
            run.recorder.end_operator(ticket);
        });
    for (std::thread& thread : crew)
        thread.join();
    for (int look = 0; look < 3; ++look)
        BOOST_TEST(run.recorder.ledger().dropped_records() == threads - most);
    const Ledger ledger = run.finished();
    BOOST_TEST(ledger.operators.size() == most);
    BOOST_TEST(
        std::all_of(ledger.operators.begin(), ledger.operators.end(), [](const auto& row) { return row.ended; }));
    BOOST_TEST(ledger.dropped_records() == threads - most);
    for (const DroppedRow& row : ledger.dropped)
        BOOST_TEST(row.ring == first_operator_ring + most);
}

BOOST_AUTO_TEST_CASE(a_begin_and_its_end_never_allocate) {
    const TemporaryFile file;
    Recorder recorder{file.path(), {.ring_records = 256}};
    const std::uint32_t name = recorder.add_name("a");
    recorder.end_operator(recorder.begin_operator({.name = name}));   // creates the ring
    const std::size_t before = allocations();
    for (int i = 0; i < 5000; ++i) {   // more than the ring holds, since drops must not allocate, either
        const Region region{recorder, name};
        recorder.push(AllocationRow{});
        recorder.push(StackSampleRow{});
        recorder.add_name("a");
    }
    BOOST_TEST(allocations() - before == 0u);
}

BOOST_AUTO_TEST_CASE(operators_stay_within_their_limit_and_the_rest_is_counted_in_few_rows) {
    for (const bool with_file : {true, false})
        for (const std::uint64_t limit : {0u, 10'000u, 100'000u}) {
            const TemporaryFile file;
            const RecorderOptions options{.operator_limit_bytes = limit};
            const auto recorder =
                with_file ? std::make_unique<Recorder>(file.path(), options) : std::make_unique<Recorder>(options);
            const std::uint32_t name = recorder->add_name("a"),
                                stack = recorder->add_stack({.frame = recorder->add_frame({.function = name})});
            constexpr std::size_t rounds = 8'000;
            for (std::size_t i = 0; i < rounds; ++i) {
                const Region region{*recorder, name};
                recorder->push(AllocationRow{recorder->now_ns(), 0, -1, 1, 1, 0});
                recorder->push(StackSampleRow{recorder->now_ns(), 0, stack, 1});
                if (i % 1000 == 999)
                    (void)recorder->ledger();
            }
            recorder->finish();
            const Ledger ledger = recorder->ledger();
            const std::size_t kept = ledger.operators.size() + ledger.allocations.size() + ledger.stack_samples.size();
            BOOST_TEST(kept + ledger.dropped_records() == 3 * rounds);
            BOOST_TEST(ledger.dropped_records() == recorder->state().dropped);
            // one per call of ledger(), and some in between at doubling distances
            BOOST_TEST(ledger.dropped.size() <= rounds / 1000 + 16);
            BOOST_TEST((kept == 0) == (limit == 0));
            BOOST_TEST((limit < 100'000 || kept > 1'000));
            for (const OperatorRow& row : ledger.operators)
                BOOST_TEST_REQUIRE(row.ended);   // a call that began in time has its end
            if (with_file) {
                BOOST_TEST(recorder->state().bytes <= limit + 10'000u);
                BOOST_TEST((read_trace(file.path()).ledger == ledger));
            }
        }
}

BOOST_AUTO_TEST_CASE(what_operators_name_counts_towards_their_limit_without_a_file_too) {
    const ManualClock clock{1};
    Recorder recorder{RecorderOptions{.operator_limit_bytes = 8192}, AnyClock{clock}};
    const auto call = [&](std::string_view name) {
        recorder.end_operator(recorder.begin_operator({.name = recorder.add_name(name)}));
        return recorder.ledger();
    };
    BOOST_TEST(call("a").operators.size() == 1u);
    const Ledger full = call(std::string(10'000, 'b'));
    BOOST_TEST(full.operators.size() == 1u);
    BOOST_TEST(full.dropped_records() == 1u);
}

BOOST_AUTO_TEST_CASE(a_full_recording_tells_of_its_drops_ever_more_rarely) {
    Recording run{{.operator_limit_bytes = 0, .ring_records = 64}};
    constexpr std::uint64_t drains = 100, each = 40;   // more than half a ring, so the writer comes at once
    for (std::uint64_t drain = 1; drain <= drains; ++drain) {
        for (std::uint64_t i = 0; i < each; ++i)
            run.recorder.push(AllocationRow{});
        while (run.recorder.state().dropped < drain * each)
            std::this_thread::yield();
    }
    const Ledger ledger = run.finished();
    BOOST_TEST(ledger.dropped_records() == drains * each);
    BOOST_TEST(ledger.dropped.size() > 1u);
    BOOST_TEST(ledger.dropped.size() < 20u);
}

BOOST_AUTO_TEST_CASE(after_finish_no_operator_is_recorded_and_what_comes_is_counted) {
    Recording run;
    run.end(run.begin("a"));
    const Ledger finished = run.finished();
    run.end(run.begin("b"));
    std::thread{[&] { run.end(run.begin("c")); }}.join();
    run.recorder.push(AllocationRow{});
    BOOST_TEST((run.recorder.ledger() == finished));
    BOOST_TEST(run.recorder.state().dropped == 3u);
}

BOOST_AUTO_TEST_CASE(a_full_disk_ends_the_file_and_not_the_operators) {
    const ManualClock clock{1};
    Recorder recorder{"/dev/full", {}, AnyClock{clock}};
    const std::uint32_t name = recorder.add_name("a");
    for (int i = 0; i < 100; ++i)
        recorder.end_operator(recorder.begin_operator({.name = name}));
    BOOST_TEST(recorder.ledger().operators.size() == 100u);
    BOOST_TEST(recorder.state().dropped == 0u);
}

BOOST_AUTO_TEST_SUITE_END()
