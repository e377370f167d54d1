// Files that a trace may come in: truncated, damaged, compressed, large.
#include <drawpoint/instrumentation/import/chrome_trace.hpp>

#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <streambuf>
#include <string>
#include <string_view>
#include <system_error>

#include <zlib.h>

#include "instrumentation/import/chrome_trace_text.hpp"

using namespace drawpoint;
using namespace drawpoint::test;

namespace {

std::string gzipped(const std::string& text) {
    z_stream stream{};
    deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
    std::string out(compressBound(static_cast<uLong>(text.size())) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    deflate(&stream, Z_FINISH);
    out.resize(stream.total_out);
    deflateEnd(&stream);
    return out;
}

/// The text of a trace with a given number of events, generated while it is read.
class Generated : public std::streambuf {
public:
    explicit Generated(std::uint64_t events) : left_{events} {
        piece_ = R"({"traceEvents": [)";
        show();
    }

private:
    int_type underflow() override {
        if (left_ == 0 && done_)
            return traits_type::eof();
        if (left_ == 0) {
            piece_ = "]}";
            done_ = true;
        } else {
            piece_ =
                R"({"ph": "X", "cat": "cpu_op", "name": "aten::op)" + std::to_string(left_ % 100) +
                R"(", "pid": 1, "tid": 1, "ts": )" + std::to_string(ts_++) +
                R"(.250, "dur": 0.500, "args": {"External id": 3, "Concrete Inputs": ["", "[1, 1]"], "Input Dims": [[16, 3, 16, 16], []]}})" +
                (left_ == 1 ? "" : ",\n");
            --left_;
        }
        show();
        return traits_type::to_int_type(piece_[0]);
    }
    void show() { setg(piece_.data(), piece_.data(), piece_.data() + piece_.size()); }

    std::uint64_t left_, ts_ = 0;
    bool done_ = false;
    std::string piece_;
};

}   // namespace

BOOST_AUTO_TEST_SUITE(chrome_trace_input)

BOOST_AUTO_TEST_CASE(a_trace_cut_at_any_byte_gives_the_whole_events_before) {
    const std::string events = without_last_comma(complete("cpu_op", "aten::mm", 1, 2) +
                                                  complete("cpu_op", "aten::t", 4, 2) + complete("kernel", "k", 5, 2));
    const std::string text = trace(events);
    const std::size_t first = text.find("\"traceEvents\": [") + 16, end = first + events.size();
    for (std::size_t length = 0; length < text.size(); ++length) {
        const std::string part = text.substr(0, length);
        if (length < first) {
            BOOST_CHECK_THROW(import(part), std::runtime_error);
            continue;
        }
        const ImportedTrace imported = import(part);
        BOOST_TEST(imported.truncated);
        BOOST_TEST_REQUIRE(!imported.warnings.empty());
        BOOST_TEST(imported.warnings[0].starts_with("t.json ends inside, at byte " + std::to_string(length)));
        BOOST_TEST(imported.ledger.operators.size() == imported.events);
        if (length >= end)
            BOOST_TEST(imported.events == 3u);
    }
    BOOST_TEST(!import(text).truncated);
}

BOOST_AUTO_TEST_CASE(bad_json_is_an_error_naming_the_byte_it_stands_at) {
    const std::string good = complete("cpu_op", "a", 1, 2);
    const auto refused = [&](const std::string& event) {
        const std::string text = trace(good + event);
        const std::string at = "t.json: byte " + std::to_string(text.find(good) + good.size()) + ": ";
        BOOST_CHECK_EXCEPTION(import(text), std::runtime_error, says(at));
    };
    refused(R"({"ph": "X" "name": "b"})");
    refused(R"({"ph": 3})");
    refused(R"({"ph": "X", "args": {"a": [1})");
    refused("{\"name\": \"\xff\"}");
    refused(R"({"name": "\x"})");
    BOOST_CHECK_EXCEPTION(import(R"({"a": nul, "traceEvents": []})"), std::runtime_error,
                          says("byte 6: the value of 'a'"));
}

BOOST_AUTO_TEST_CASE(what_is_no_trace_says_so) {
    for (const char* text : {"", "hello", "7", "\"x\""})
        BOOST_CHECK_EXCEPTION(import(text), std::runtime_error, says("t.json: byte 0: not a Chrome trace"));
    for (const char* text : {"{}", R"({"a": 1})", R"({"traceEvents": 3})"})
        BOOST_CHECK_EXCEPTION(import(text), std::runtime_error,
                              says("t.json: not a Chrome trace: it has no traceEvents"));
    BOOST_CHECK_EXCEPTION(import(R"({"a": )"), std::runtime_error, says("it ends before its traceEvents"));
    BOOST_CHECK_EXCEPTION((void)import_chrome_trace("no/such/trace.json"), std::system_error,
                          says("no/such/trace.json"));
    BOOST_CHECK_EXCEPTION((void)import_chrome_trace(std::filesystem::temp_directory_path()), std::system_error,
                          says("directory"));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_used_is_counted_in_a_warning) {
    const ImportedTrace imported =
        import(trace(R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "dur": 1},
        {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": -1},
        {"ph": "X", "cat": "cpu_op", "pid": 1, "tid": 1, "ts": 1, "dur": 1},
        {"ph": "b", "cat": "x", "name": "a", "pid": 1, "tid": 1, "ts": 1},
        {"ph": "s", "cat": "fwdbwd", "name": "a", "pid": 1, "tid": 1, "ts": 1})"));
    BOOST_TEST(imported.ledger.operators.empty());
    BOOST_TEST_REQUIRE(imported.warnings.size() == 2u);
    BOOST_TEST(imported.warnings[0].starts_with("3 events without"));
    BOOST_TEST(imported.warnings[1] == "1 events of phase 'b' are left out");
}

BOOST_AUTO_TEST_CASE(times_that_would_overflow_are_left_out) {
    const ImportedTrace imported = import(R"({"baseTimeNanoseconds": 9000000000000000000, "traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 9000000000000000, "dur": 1},
            {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 9000000000000000},
            {"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]})");
    BOOST_TEST_REQUIRE(imported.ledger.operators.size() == 1u);
    BOOST_TEST(imported.ledger.operators[0].begin_ns == 1000);
    BOOST_TEST_REQUIRE(imported.warnings.size() == 2u);
    BOOST_TEST(imported.warnings[0].find("baseTimeNanoseconds") != std::string::npos);
    BOOST_TEST(imported.warnings[1].starts_with("2 events without"));
}

BOOST_AUTO_TEST_CASE(a_thread_below_zero_has_its_magnitude_as_number_also_the_lowest) {
    const ImportedTrace imported =
        import(trace(R"({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": -7, "ts": 1, "dur": 1},
        {"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": -9223372036854775808, "ts": 1, "dur": 1})"));
    BOOST_TEST_REQUIRE(imported.ledger.threads.size() == 2u);
    BOOST_TEST(imported.ledger.threads[0].tid == 7u);
    BOOST_TEST(imported.ledger.threads[1].tid == 9'223'372'036'854'775'808u);
}

BOOST_AUTO_TEST_CASE(gzip_is_told_by_its_content_in_any_number_of_members) {
    const std::string text = trace(without_last_comma(complete("cpu_op", "a", 1, 2) + complete("cpu_op", "b", 4, 2)));
    const Ledger plain = import(text).ledger;
    BOOST_TEST((import(gzipped(text)).ledger == plain));
    BOOST_TEST((import(gzipped(text.substr(0, 50)) + gzipped(text.substr(50))).ledger == plain));
}

BOOST_AUTO_TEST_CASE(damaged_gzip_gives_what_came_before_the_damage) {
    std::string events;
    for (int i = 0; i < 20'000; ++i)
        events += complete("cpu_op", "op" + std::to_string(i * 7919 % 10'007), 10 * i, i % 10);
    std::string packed = gzipped(trace(without_last_comma(events)));
    const ImportedTrace cut = import(packed.substr(0, packed.size() / 2));
    BOOST_TEST(cut.truncated);
    BOOST_TEST(cut.warnings.at(0).find("the compressed data ends too early") != std::string::npos);
    BOOST_TEST(cut.events > 1000u);
    BOOST_TEST(cut.events < 19'000u);
    packed[packed.size() - 6] = static_cast<char>(packed[packed.size() - 6] ^ 0x55);   // damages its checksum
    const ImportedTrace wrong = import(packed);
    BOOST_TEST(wrong.truncated);
    BOOST_TEST(wrong.warnings.at(0).find("the compressed data is damaged") != std::string::npos);
    BOOST_TEST(wrong.events == 20'000u);
}

BOOST_AUTO_TEST_CASE(a_list_of_events_alone_is_a_trace) {
    const std::string list = "[" + complete("cpu_op", "a", 1, 2);
    BOOST_TEST(import(list).ledger.operators.size() == 1u);
    BOOST_TEST(!import(list).truncated);
}

BOOST_AUTO_TEST_CASE(windows_line_ends_change_nothing) {
    const std::string text =
        trace("\n" + complete("cpu_op", "a", 1, 2) + "\n" + complete("user_annotation", "ProfilerStep#1", 1, 9) + "\n" +
              without_last_comma(complete("cpu_op", "b", 4, 2)));
    std::string other;
    for (const char c : text)
        other += c == '\n' ? "\r\n" : std::string{c};
    BOOST_TEST((import(other).ledger == import(text).ledger));
    BOOST_TEST((import(other, {.operators = false}).ledger == import(text, {.operators = false}).ledger));
}

BOOST_AUTO_TEST_CASE(what_unpacks_to_a_thousand_times_its_size_takes_no_more_memory) {
    std::string events;
    for (int i = 0; i < 200'000; ++i)
        events += complete("cpu_op", "aten::the_same", 1, 1);
    const std::string packed = gzipped(trace(without_last_comma(events)));
    BOOST_TEST(packed.size() * 100 < events.size());
    const ImportedTrace imported = import(packed, {.operators = false});
    BOOST_TEST(imported.events == 200'000u);
    BOOST_TEST(imported.ledger.operators.empty());
    BOOST_TEST(imported.buffer_bytes <= 2 * ImportOptions{}.block_bytes + 4096);
    // An event without an end is refused at the limit.
    const std::string endless = gzipped(R"({"traceEvents": [{"name": ")" + std::string(3u << 20, 'x'));
    BOOST_CHECK_EXCEPTION(import(endless, {.max_event_bytes = 1u << 20, .operators = false}), std::runtime_error,
                          says("longer than 1048576 bytes"));
}

BOOST_AUTO_TEST_CASE(the_memory_for_text_does_not_grow_with_the_file) {
    const auto buffer_of = [](std::uint64_t events) {
        Generated buffer{events};
        std::istream from{&buffer};
        const ImportedTrace imported = import_chrome_trace(from, "big.json");
        BOOST_TEST(imported.events == events);
        BOOST_TEST(imported.ledger.operators.size() == events);
        BOOST_TEST(imported.ledger.names.size() == 101u);
        BOOST_TEST(imported.bytes > events * 150);
        return imported.buffer_bytes;
    };
    const std::size_t bytes = buffer_of(10'000);   // 2 MB
    BOOST_TEST(bytes <= 2 * ImportOptions{}.block_bytes + 4096);
    BOOST_TEST(buffer_of(150'000) == bytes);   // 30 MB
}

BOOST_AUTO_TEST_SUITE_END()
