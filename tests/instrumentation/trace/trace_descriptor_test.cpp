#include <fstream>
#include <string>

#include <boost/test/unit_test.hpp>
#include <protozero/pbf_reader.hpp>
#include <protozero/pbf_writer.hpp>

#include "instrumentation/trace/trace_descriptor.hpp"
#include "instrumentation/trace/recorded_run.hpp"

namespace {

enum class Message { set, file, type, field };

/// A descriptor without json_name (10 of a field) and dependency (3 of a file).
std::string cleared(protozero::pbf_reader from, Message message) {
    std::string to;
    protozero::pbf_writer writer{to};
    while (from.next()) {
        const auto tag = from.tag();
        if (from.wire_type() != protozero::pbf_wire_type::length_delimited) {
            writer.add_uint64(tag, from.get_uint64());
            continue;
        }
        const protozero::data_view content = from.get_view();
        if ((message == Message::file && tag == 3) || (message == Message::field && tag == 10))
            continue;
        const auto inner = [&](Message kind) {
            writer.add_message(tag, cleared(protozero::pbf_reader{content}, kind));
        };
        if (message == Message::set && tag == 1)
            inner(Message::file);
        else if (message == Message::file && tag == 4)
            inner(Message::type);
        else if (message == Message::type && tag == 3)
            inner(Message::type);
        else if ((message == Message::type && (tag == 2 || tag == 6)) || (message == Message::file && tag == 7))
            inner(Message::field);
        else
            writer.add_bytes(tag, content);
    }
    return to;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(trace_descriptor)

BOOST_AUTO_TEST_CASE(the_descriptor_in_a_recording_is_that_of_the_proto_file) {
    const TemporaryFile made{"descriptor"};
    const std::string tests = DRAWPOINT_TEST_DIR, sources = tests + "/../instrumentation/trace";
    const std::string command = "protoc -I '" + tests + "/instrumentation/trace/stubs' -I '" + sources +
                                "' '--descriptor_set_out=" + made.path().string() + "' '" + sources +
                                "/drawpoint_trace.proto'";
    BOOST_TEST_REQUIRE(std::system(command.c_str()) == 0, command);
    std::ifstream in{made.path(), std::ios::binary};
    const std::string of_protoc{std::istreambuf_iterator<char>{in}, {}};
    const std::string embedded{reinterpret_cast<const char*>(drawpoint::trace_descriptor),
                               sizeof drawpoint::trace_descriptor};
    BOOST_TEST((cleared(protozero::pbf_reader{of_protoc}, Message::set) == embedded));
}

BOOST_AUTO_TEST_SUITE_END()
