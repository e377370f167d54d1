#include <boost/test/unit_test.hpp>

#include <zlib.h>

#include <cstdint>
#include <map>
#include <ostream>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <protozero/pbf_reader.hpp>

#include <drawpoint/instrumentation/export/pprof.hpp>
#include <drawpoint/instrumentation/facts.hpp>

namespace {

using namespace drawpoint;

std::string unzipped(const std::string& packed) {
    z_stream stream{};
    BOOST_REQUIRE_EQUAL(inflateInit2(&stream, 15 + 16), Z_OK);   // accepts gzip only
    std::string bytes(1u << 20, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
    stream.avail_out = static_cast<uInt>(bytes.size());
    BOOST_REQUIRE_EQUAL(inflate(&stream, Z_FINISH), Z_STREAM_END);
    bytes.resize(stream.total_out);
    inflateEnd(&stream);
    return bytes;
}

struct Sample {
    std::vector<std::string> functions;   // innermost first
    std::int64_t count = 0, ns = 0;
    std::map<std::string, std::string> labels;
};

/// A profile, parsed with the field numbers of pprof's profile.proto.
struct Profile {
    std::vector<std::string> strings;
    std::vector<std::string> types;
    std::map<std::uint64_t, std::string> functions;     // name@file:line
    std::map<std::uint64_t, std::uint64_t> locations;   // → function
    std::vector<Sample> samples;
    std::int64_t period = 0, time_nanos = 0, duration_nanos = 0;
};

Profile read(const std::string& bytes) {
    Profile profile;
    protozero::pbf_reader strings{bytes};
    while (strings.next(6))
        profile.strings.push_back(strings.get_string());
    const auto text = [&](std::int64_t at) { return profile.strings.at(static_cast<std::size_t>(at)); };
    protozero::pbf_reader frames{bytes};
    while (frames.next()) {
        if (frames.tag() == 4) {
            protozero::pbf_reader location = frames.get_message();
            std::uint64_t id = 0;
            while (location.next()) {
                if (location.tag() == 1) {
                    id = location.get_uint64();
                } else if (location.tag() == 4) {
                    protozero::pbf_reader line = location.get_message();
                    BOOST_REQUIRE(line.next(1));
                    profile.locations[id] = line.get_uint64();
                } else {
                    location.skip();
                }
            }
        } else if (frames.tag() == 5) {
            protozero::pbf_reader function = frames.get_message();
            std::map<std::uint32_t, std::int64_t> fields;
            while (function.next())
                fields[function.tag()] = function.get_int64();
            profile.functions[static_cast<std::uint64_t>(fields[1])] =
                text(fields[2]) + "@" + text(fields[4]) + ":" + std::to_string(fields[5]);
        } else {
            frames.skip();
        }
    }
    protozero::pbf_reader rest{bytes};
    while (rest.next()) {
        switch (rest.tag()) {
        case 1: {
            protozero::pbf_reader type = rest.get_message();
            std::string both;
            while (type.next())
                both += text(type.get_int64()) + ".";
            profile.types.push_back(both);
            break;
        }
        case 2: {
            protozero::pbf_reader message = rest.get_message();
            Sample sample;
            while (message.next()) {
                if (message.tag() == 1) {
                    for (const std::uint64_t id : message.get_packed_uint64())
                        sample.functions.push_back(profile.functions.at(profile.locations.at(id)));
                } else if (message.tag() == 2) {
                    const auto values = message.get_packed_int64();
                    BOOST_REQUIRE_EQUAL(std::distance(values.begin(), values.end()), 2);
                    sample.count = *values.begin();
                    sample.ns = *std::next(values.begin());
                } else {
                    protozero::pbf_reader label = message.get_message();
                    std::map<std::uint32_t, std::int64_t> fields;
                    while (label.next())
                        fields[label.tag()] = label.get_int64();
                    sample.labels[text(fields[1])] = text(fields[2]);
                }
            }
            profile.samples.push_back(sample);
            break;
        }
        case 9: profile.time_nanos = rest.get_int64(); break;
        case 10: profile.duration_nanos = rest.get_int64(); break;
        case 12: profile.period = rest.get_int64(); break;
        default: rest.skip();
        }
    }
    return profile;
}

Profile written(const Ledger& ledger, std::string_view action = {}) {
    std::ostringstream out;
    write_pprof(ledger, out, action);
    return read(unzipped(out.str()));
}

Ledger sampled_run() {
    Ledger ledger;
    ledger.names = {"main", "leaf", "m.cpp", "act", "never sampled"};
    ledger.frames = {{0, 2, 1}, {1, 2, 9}, {4}};
    ledger.stacks = {{nothing, 0}, {0, 1}};
    ledger.threads = {{.tid = 4, .name = "loop"}};
    ledger.operators = {{.kind = OperatorKind::user_annotation, .name = 3, .thread = 0, .begin_ns = 10, .ns = 10}};
    ledger.stack_samples = {{0, 0, 1, 100}, {1, 0, 1, 100}, {12, 0, 1, 30}, {13, 0, 0, 7}};
    ledger.set_fact(facts::sampling_rate_asked_hz, "1000");
    ledger.set_fact(facts::unix_offset_ns, "5000");
    return ledger;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(pprof)

BOOST_AUTO_TEST_CASE(samples_of_one_stack_and_action_are_one_row_with_both_values) {
    const Profile profile = written(sampled_run());
    BOOST_REQUIRE_EQUAL(profile.samples.size(), 3u);
    const auto& plain = profile.samples[1].labels.contains("action") ? profile.samples[0] : profile.samples[1];
    BOOST_TEST(plain.count == 2);
    BOOST_TEST(plain.ns == 200);
    BOOST_TEST((plain.functions == std::vector<std::string>{"leaf@m.cpp:9", "main@m.cpp:1"}));
    std::int64_t count = 0, ns = 0;
    for (const Sample& sample : profile.samples) {
        BOOST_TEST(sample.labels.at("thread") == "loop");
        count += sample.count;
        ns += sample.ns;
    }
    BOOST_TEST(count == 4);
    BOOST_TEST(ns == 237);
}

BOOST_AUTO_TEST_CASE(it_says_what_its_numbers_are) {
    const Profile profile = written(sampled_run());
    BOOST_REQUIRE(!profile.strings.empty());
    BOOST_TEST(profile.strings[0].empty());
    BOOST_TEST((profile.types == std::vector<std::string>{"samples.count.", "cpu.nanoseconds."}));
    BOOST_TEST(profile.period == 1'000'000);
    BOOST_TEST(profile.time_nanos == 5000);
    BOOST_TEST(profile.duration_nanos == 13);
    BOOST_TEST(profile.functions.size() == 2u);   // only functions that occur in a sample
    BOOST_TEST(!profile.functions.contains(0));
}

BOOST_AUTO_TEST_CASE(one_actions_profile_holds_its_samples_alone) {
    const Profile profile = written(sampled_run(), "act");
    BOOST_REQUIRE_EQUAL(profile.samples.size(), 2u);
    for (const Sample& sample : profile.samples)
        BOOST_TEST(sample.labels.at("action") == "act");
}

BOOST_AUTO_TEST_CASE(no_samples_give_a_valid_empty_profile) { BOOST_TEST(written(Ledger{}).samples.empty()); }

BOOST_AUTO_TEST_CASE(a_profile_that_is_compressed_in_many_pieces_is_whole) {
    Ledger ledger;
    ledger.threads = {{.tid = 4}};
    std::mt19937_64 random;   // so that it does not compress well
    for (std::uint32_t i = 0; i < 5'000; ++i) {
        ledger.names.push_back(std::to_string(random()) + std::to_string(random()) + std::to_string(random()));
        ledger.frames.push_back({i});
        ledger.stacks.push_back({i == 0 ? nothing : i - 1, i});
    }
    ledger.stack_samples = {{0, 0, 4'999, 1}};
    const Profile profile = written(ledger);
    BOOST_REQUIRE_EQUAL(profile.samples.size(), 1u);
    BOOST_REQUIRE_EQUAL(profile.samples[0].functions.size(), 5'000u);
    for (std::size_t i = 0; i < 5'000; ++i)
        BOOST_REQUIRE(profile.samples[0].functions[4'999 - i].starts_with(ledger.names[i]));
}

BOOST_AUTO_TEST_CASE(a_stream_that_fails_is_said) {
    std::ostream nowhere{nullptr};
    BOOST_CHECK_THROW(write_pprof(sampled_run(), nowhere), std::runtime_error);
}

BOOST_AUTO_TEST_SUITE_END()
