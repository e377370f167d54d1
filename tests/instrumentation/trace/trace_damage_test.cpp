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
std::string damage_of(trace_fields::Tag kind, Fill fill) {
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
    give(f::record::run, [](protozero::pbf_writer& run) { run.add_uint32(f::run::format, f::format); });
    try {
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
