#include <fcntl.h>
#include <unistd.h>

#include <random>

#include <boost/test/unit_test.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include <drawpoint/instrumentation/ledger/records.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>

#include "instrumentation/trace/trace_fields.hpp"
#include "instrumentation/trace/trace_parser.hpp"
#include "support/sanitized.hpp"
#include "instrumentation/trace/recorded_run.hpp"
#include "instrumentation/trace/trace_block.hpp"

using namespace drawpoint;

namespace {

/// A file of about 100 KB in several blocks.
struct Sample100k {
    Sample100k() {
        TraceWriter writer{file.path(), {.start_ns = 1000, .monotonic_ns = 5, .boottime_ns = 6, .realtime_ns = 7}};
        write(random_run(5, 1000, {.train_batches = 24, .batch_size = 11}), writer, 100);
        content = test::bytes_in(file.path());
        whole = read_trace(file.path()).ledger;
    }
    TemporaryFile file;
    std::string content;
    Ledger whole;
};

/// Where each packet with a row ends. Parses the file by itself, without the reader's code.
std::vector<std::size_t> ends_of_rows(const std::string& content) {
    namespace f = trace_fields;
    std::vector<std::size_t> ends;
    protozero::pbf_reader file{content};
    while (file.next(f::trace_packet)) {
        const protozero::data_view packet_bytes = file.get_view();
        protozero::pbf_reader packet{packet_bytes};
        const auto ended = [&] {
            ends.push_back(static_cast<std::size_t>(packet_bytes.data() + packet_bytes.size() - content.data()));
        };
        while (packet.next()) {
            if (packet.tag() == f::packet::definitions) {
                protozero::pbf_reader definitions = packet.get_message();
                while (definitions.next()) {
                    if (definitions.tag() >= f::definitions::names_before) {
                        definitions.skip();
                        continue;
                    }
                    const bool one = definitions.tag() < f::definitions::frames;
                    const std::size_t values = definitions.tag() == f::definitions::frames ? 3 : 2;
                    std::size_t count = 0;
                    if (one)
                        definitions.skip(), count = values;
                    else
                        for (const std::uint64_t value : definitions.get_packed_uint64())
                            static_cast<void>(value), ++count;
                    for (; count >= values; count -= values)
                        ended();
                }
                continue;
            }
            if (packet.tag() != f::packet::event) {
                packet.skip();
                continue;
            }
            protozero::pbf_reader event = packet.get_message();
            while (event.next()) {
                const auto tag = event.tag();
                if (tag >= f::record::sample && tag != f::record::run && tag != f::record::pass_begin &&
                    tag != f::record::fact && tag != f::record::operator_end)
                    ended();
                event.skip();
            }
        }
    }
    return ends;
}

/// The range of bytes that a message names; the same byte twice if it names only one.
std::pair<std::size_t, std::size_t> named_range(const std::string& message) {
    const auto number_after = [&](const std::string& word) -> std::optional<std::size_t> {
        const auto at = message.rfind(word);
        if (at == std::string::npos)
            return std::nullopt;
        return std::stoul(message.substr(at + word.size()));
    };
    const auto from = number_after("bytes "), to = number_after(" to ");
    if (from && to)
        return {*from, *to};
    const std::size_t at = number_after("byte ").value();
    return {at, at};
}

/// The parser's complaint about a record in a packet of its own, which our writer never makes; "" if it accepts the
/// record.
template <class Fill>
std::string damage_of(trace_fields::Tag kind, Fill fill, std::uint32_t format = trace_fields::format) {
    namespace f = trace_fields;
    TraceParser parser;
    const auto give = [&parser](f::Tag tag, auto fill_record) {
        std::string content, event, bytes;
        protozero::pbf_writer record{bytes};
        fill_record(record);
        protozero::pbf_writer{event}.add_message(tag, bytes);
        protozero::pbf_writer packet{content};
        packet.add_uint64(f::packet::timestamp, 5);
        packet.add_message(f::packet::event, event);
        parser.packet(content);
    };
    try {
        give(f::record::run, [&](protozero::pbf_writer& run) { run.add_uint32(f::run::format, format); });
        give(kind, fill);
    } catch (const TraceDamage& damage) {
        return damage.what;
    }
    return "";
}

}   // namespace

BOOST_AUTO_TEST_SUITE(trace_damage)

BOOST_AUTO_TEST_CASE(a_file_cut_at_any_byte_gives_every_row_before_the_cut) {
    const Sample100k sample;
    BOOST_TEST_REQUIRE(sample.content.size() > 90'000u);
    BOOST_TEST_REQUIRE(sample.content.size() < 130'000u);
    const std::vector<std::size_t> ends = ends_of_rows(sample.content);
    BOOST_TEST_REQUIRE(ends.size() == rows_of(sample.whole));
    const std::size_t stride = test::sanitized ? 31 : 1;
    std::optional<std::size_t> rows;
    Ledger before;
    for (std::size_t cut = sample.content.size() - 1; cut < sample.content.size(); cut -= stride) {
        std::filesystem::resize_file(sample.file.path(), cut);
        const ReadTrace read = read_trace(sample.file.path());
        const std::size_t got = rows_of(read.ledger);
        const auto whole_before =
            static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), cut) - ends.begin());
        if (got != whole_before || read.damaged ||
            (!rows || *rows != got ? !is_part_of(read.ledger, sample.whole) : !is_part_of(read.ledger, before))) {
            BOOST_ERROR("cut at " << cut << ": " << got << " rows of " << whole_before << ", " << read.warning);
            return;
        }
        // A file that is cut between two blocks looks complete.
        if (!read.warning.empty() &&
            read.warning != sample.file.path().string() + ": cut at byte " + std::to_string(cut))
            BOOST_ERROR(read.warning);
        if (!rows || *rows != got)
            before = read.ledger;
        rows = got;
    }
    BOOST_TEST(*rows == 0u);
}

BOOST_AUTO_TEST_CASE(flipped_bits_never_make_a_number_and_the_first_is_in_the_range_named) {
    const Sample100k sample;
    std::mt19937_64 random{11};
    const int files = test::sanitized ? 3'000 : 20'000;
    int refused = 0;
    const int descriptor = ::open(sample.file.path().c_str(), O_RDWR | O_CLOEXEC);
    BOOST_TEST_REQUIRE(descriptor >= 0);
    const auto put = [&](std::size_t at, char byte) {
        BOOST_REQUIRE(::pwrite(descriptor, &byte, 1, static_cast<off_t>(at)) == 1);
    };
    for (int i = 0; i < files; ++i) {
        std::string damaged = sample.content;
        std::size_t first = damaged.size();
        std::vector<std::size_t> places;
        for (std::uint64_t flips = 1 + random() % 8; flips > 0; --flips) {
            // Half of the bits are among the first bytes, which hold headers and the run's record.
            const std::size_t at = random() % (random() % 2 == 0 ? damaged.size() : damaged.size() / 20);
            damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
            places.push_back(at);
        }
        for (const std::size_t at : places) {
            put(at, damaged[at]);
            if (damaged[at] != sample.content[at])
                first = std::min(first, at);
        }
        std::string said;
        bool right = true;
        try {
            const ReadTrace read = read_trace(sample.file.path());
            right = is_part_of(read.ledger, sample.whole) && (read.damaged || first == damaged.size());
            said = read.warning;
        } catch (const TraceError& error) {
            said = error.what();
            ++refused;
        }
        if (first != damaged.size()) {
            const auto [from, to] = said.empty() ? std::pair<std::size_t, std::size_t>{1, 0} : named_range(said);
            // "byte 0: no block header here" is about the whole first header.
            right = right && first >= from && (first <= to || (to == 0 && first < 80));
        }
        if (!right) {
            BOOST_ERROR("file " << i << ", first flip at " << first << ": " << said);
            break;
        }
        for (const std::size_t at : places)
            put(at, sample.content[at]);
    }
    ::close(descriptor);
    BOOST_TEST(refused > 0);
}

BOOST_AUTO_TEST_CASE(a_flipped_bit_costs_its_own_block_and_no_other) {
    const Sample100k sample;
    for (std::size_t at = sample.content.size() / 10; at < sample.content.size(); at += 997) {
        std::string damaged = sample.content;
        damaged[at] = static_cast<char>(damaged[at] ^ 4);
        test::put_bytes(sample.file.path(), damaged);
        const ReadTrace read = read_trace(sample.file.path());
        const auto [from, to] = named_range(read.warning);
        const std::size_t lost = rows_of(sample.whole) - rows_of(read.ledger) + read.ledger.dropped.size();
        const std::vector<std::size_t> ends = ends_of_rows(sample.content);
        const auto inside = std::ranges::count_if(ends, [&](std::size_t end) { return end > from && end <= to; });
        BOOST_TEST(read.damaged);
        BOOST_TEST(to - from < 20'000u);
        BOOST_TEST(lost <= static_cast<std::size_t>(inside), "at " << at << ": " << lost << " rows of " << inside);
        BOOST_TEST_REQUIRE(read.ledger.dropped.size() == 1u);
        BOOST_TEST(read.ledger.dropped[0].ring == damaged_part);
        BOOST_TEST(read.ledger.dropped[0].records > 0u);
        // Of the last block, its own header alone says how many rows it has.
        const bool is_last_header = to >= sample.content.size() && at - from < 80;
        BOOST_TEST((is_last_header || read.ledger.dropped[0].records + 1 >= lost), "at " << at);
        BOOST_TEST(read.ledger.dropped[0].from_ns >= sample.whole.start_ns);
        if (to < sample.content.size())   // there are later rows
            BOOST_TEST(read.ledger.dropped[0].from_ns < read.ledger.dropped[0].to_ns);
    }
}

BOOST_AUTO_TEST_CASE(the_next_block_is_found_wherever_it_begins) {
    const TemporaryFile file;
    TraceWriter{file.path(), {.start_ns = 1000}}.close();
    const std::string beginning = test::bytes_in(file.path()), packets = {0x0a, 0};
    for (std::size_t hole = 4096 - 2 * max_header_bytes; hole < 4096 + 10; ++hole) {   // the search reads 4096 at first
        BlockHeader header{.offset = beginning.size() + hole, .records = 2, .dropped = 0, .bytes = packets.size()};
        header.crc32 = header.checksum(packets);
        test::put_bytes(file.path(), beginning + std::string(hole, 'x') + header.encoded() + packets);
        const auto [from, to] = named_range(read_trace(file.path()).warning);
        BOOST_TEST(from == beginning.size());
        BOOST_TEST(to == beginning.size() + hole);
    }
}

BOOST_AUTO_TEST_CASE(bytes_behind_the_last_block_are_damage_and_cost_no_row) {
    const Sample100k sample;
    for (const std::string& tail : {std::string{"x\n"}, "\n" + std::string(200, 'x') + "\n", std::string(5000, '\n')}) {
        test::put_bytes(sample.file.path(), sample.content + tail);
        ReadTrace read = read_trace(sample.file.path());
        BOOST_TEST(!read.warning.empty());
        std::erase_if(read.ledger.dropped, [](const DroppedRow& row) { return row.ring == damaged_part; });
        BOOST_TEST((read.ledger == sample.whole));
    }
}

BOOST_AUTO_TEST_CASE(what_a_damaged_block_defined_is_named_lost_and_all_else_keeps_its_name) {
    const TemporaryFile file;
    constexpr std::array<std::uint32_t, 5> firsts{0, 3, 2003, 2006, 2009};   // of each block, and the end
    const auto definitions = [&](std::uint32_t block) {
        Definitions added;
        for (std::uint32_t i = firsts[block]; i < firsts[block + 1]; ++i) {
            added.names.push_back("name " + std::to_string(i));
            added.threads.push_back({.tid = i, .name = "thread " + std::to_string(i)});
            added.frames.push_back({.function = i});
            added.stacks.push_back({.frame = i});
        }
        return added;
    };
    std::vector<std::size_t> blocks;   // where each begins
    {
        TraceWriter writer{file.path(), {.start_ns = 1000, .monotonic_ns = 5, .boottime_ns = 6, .realtime_ns = 7}};
        auto later = std::chrono::steady_clock::now();
        for (std::uint32_t block = 0; block < 4; ++block) {
            blocks.push_back(static_cast<std::size_t>(writer.file_bytes()));
            writer.definitions(definitions(block));
            for (std::uint32_t i = firsts[block]; i < firsts[block + 1]; ++i)
                writer.stack_sample({.at_ns = 2000 + i, .thread = i, .stack = i});
            writer.end_block_if_due(later);
            writer.end_block_if_due(later += std::chrono::seconds{1});
        }
        writer.close();
    }
    BOOST_TEST_REQUIRE(read_trace(file.path()).ledger.stack_samples.size() == 2009u);
    std::string damaged = test::bytes_in(file.path());
    for (const std::size_t block : {blocks[1], blocks[2]})   // a large one, then a small one
        damaged[block + 100] = static_cast<char>(damaged[block + 100] ^ 1);
    test::put_bytes(file.path(), damaged);
    const ReadTrace read = read_trace(file.path());
    BOOST_TEST_REQUIRE(read.damaged);
    BOOST_TEST_REQUIRE(read.ledger.stack_samples.size() == 2006u);   // the large block's are in blocks of their own
    const auto name_of = [&](std::uint32_t stack) {
        return read.ledger.names.at(read.ledger.frames.at(read.ledger.stacks.at(stack).frame).function);
    };
    for (const StackSampleRow& row : read.ledger.stack_samples) {
        const auto number = static_cast<std::uint32_t>(row.at_ns - 2000);
        const bool lost = number >= firsts[1] && number < firsts[2];
        BOOST_TEST(name_of(row.stack) == (lost ? "(lost)" : "name " + std::to_string(number)));
        BOOST_TEST(read.ledger.threads.at(row.thread).name == (lost ? "(lost)" : "thread " + std::to_string(number)));
    }
    for (const std::uint32_t i : {3u, 2002u, 2005u}) {
        BOOST_TEST(name_of(i) == "(lost)");
        BOOST_TEST(read.ledger.threads.at(i).name == "(lost)");
    }
}

BOOST_AUTO_TEST_CASE(a_block_that_ends_within_a_packet_is_damaged_though_its_checksums_are_right) {
    const TemporaryFile file;
    TraceWriter{file.path(), {.start_ns = 1000}}.close();
    const std::string beginning = test::bytes_in(file.path()),
                      packets = {0x0a, 100, 1, 2, 3};   // 100 bytes, 3 are here
    BlockHeader header{.offset = beginning.size(), .records = 2, .dropped = 0, .bytes = packets.size()};
    header.crc32 = header.checksum(packets);
    test::put_bytes(file.path(), beginning + header.encoded() + packets);
    const ReadTrace read = read_trace(file.path());
    BOOST_TEST(read.damaged);
    BOOST_TEST(read.warning.find("the last packet does not end with the block") != std::string::npos, read.warning);
}

BOOST_AUTO_TEST_CASE(more_stages_than_there_are_and_no_samples_at_all_are_damage) {
    namespace f = trace_fields;
    const auto sample = [](std::size_t stages, std::uint32_t samples) {
        return damage_of(f::record::sample, [=](protozero::pbf_writer& record) {
            const std::vector<std::uint64_t> ns(stages, 3);
            record.add_packed_uint64(f::sample::stage_ns, ns.begin(), ns.end());
            record.add_uint32(13, samples);
        });
    };
    BOOST_TEST(sample(max_stages, 1) == "");
    BOOST_TEST(sample(max_stages + 1, 1) == "a sample of 9 stages; there are at most 8");
    BOOST_TEST(sample(2, 0) == "a record of 0 samples");
    const auto pipeline = [](std::size_t stages) {
        return damage_of(f::record::pipeline, [=](protozero::pbf_writer& record) {
            for (std::size_t i = 0; i < stages; ++i)
                record.add_string(2, "decode");
        });
    };
    BOOST_TEST(pipeline(max_stages) == "");
    BOOST_TEST(pipeline(max_stages + 1) == "a loader of 9 stages; there are at most 8");
}

BOOST_AUTO_TEST_CASE(another_format_is_refused_by_its_number) {
    namespace f = trace_fields;
    for (const std::uint32_t format : {f::format - 1, f::format, f::format + 1}) {
        const std::string said = damage_of(
            f::record::pipeline, [](protozero::pbf_writer& record) { record.add_string(2, "decode"); }, format);
        BOOST_TEST(said == (format == f::format ? ""
                                                : "format " + std::to_string(format) + "; this program reads format " +
                                                      std::to_string(f::format)));
    }
}

BOOST_AUTO_TEST_CASE(a_file_that_is_not_a_recording_is_refused_with_one_line_that_names_it) {
    const TemporaryFile file{"notes.txt"};
    std::string jpeg(5000, '\x55');
    jpeg.replace(0, 4, "\xff\xd8\xff\xe0");
    for (const std::string& content : {std::string{"hello\n"}, std::string{"{}"},
                                       std::string{"\n"} + std::string(300, 'x'), std::string(100'000, '\0'), jpeg}) {
        test::put_bytes(file.path(), content);
        BOOST_CHECK_EXCEPTION((void)read_trace(file.path()), TraceError, [&](const TraceError& error) {
            const std::string what = error.what();
            return what.starts_with(file.path().string() + ": not a recording") && what.find('\n') == std::string::npos;
        });
    }
    BOOST_CHECK_THROW((void)read_trace("/dev/null"), TraceError);
    const auto names = [](const std::string& path) {
        return [path](const std::system_error& error) {
            return std::string{error.what()}.find(path) != std::string::npos;
        };
    };
    BOOST_CHECK_EXCEPTION((void)read_trace(file.path().parent_path()), std::system_error,
                          names(file.path().parent_path().string()));
    const auto absent = file.path().parent_path() / "absent.pftrace";
    BOOST_CHECK_EXCEPTION((void)read_trace(absent), std::system_error, names(absent.string()));
}

BOOST_AUTO_TEST_CASE(holes_of_a_terabyte_are_neither_read_nor_searched) {
    constexpr std::uint64_t hole = std::uint64_t{1} << 40;
    const Sample100k sample;
    std::filesystem::resize_file(sample.file.path(), sample.content.size() + hole);
    ReadTrace read = read_trace(sample.file.path());
    BOOST_TEST(read.damaged);
    BOOST_TEST(read.ledger.dropped_records() == sample.whole.dropped_records() + 1);   // at least one
    std::erase_if(read.ledger.dropped, [](const DroppedRow& row) { return row.ring == damaged_part; });
    BOOST_TEST((read.ledger == sample.whole));
    test::put_bytes(sample.file.path(), "");
    std::filesystem::resize_file(sample.file.path(), hole);
    BOOST_CHECK_THROW((void)read_trace(sample.file.path()), TraceError);
}

BOOST_AUTO_TEST_CASE(a_file_too_short_for_its_first_block_has_no_rows_and_is_no_error) {
    const Sample100k sample;
    for (const std::size_t length : {0u, 1u, 2u, 7u, 8u, 30u, 60u, 1000u}) {
        test::put_bytes(sample.file.path(), sample.content.substr(0, length));
        const ReadTrace read = read_trace(sample.file.path());
        BOOST_TEST(rows_of(read.ledger) == 0u);
        BOOST_TEST(!read.damaged);
        BOOST_TEST(read.warning == sample.file.path().string() + ": cut at byte " + std::to_string(length));
    }
}

BOOST_AUTO_TEST_SUITE_END()
