#include <cstdint>
#include <fstream>
#include <map>
#include <set>
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

/// "Step: optional uint32 epoch = 1;" for each field of a message.
std::set<std::string> fields_of(const std::string& set) {
    const std::map<std::uint64_t, std::string> types{{1, "double"}, {3, "int64"},  {4, "uint64"},  {7, "fixed32"},
                                                     {8, "bool"},   {9, "string"}, {13, "uint32"}, {18, "sint64"}};
    std::set<std::string> fields;
    protozero::pbf_reader sets{set};
    while (sets.next(1))
        for (protozero::pbf_reader file = sets.get_message(); file.next(4);) {
            std::string message;
            for (protozero::pbf_reader type = file.get_message(); type.next();) {
                if (type.tag() == 1) {
                    message = type.get_string();
                } else if (type.tag() == 2) {
                    std::string name, kind, label, options;
                    std::uint64_t number = 0;
                    for (protozero::pbf_reader field = type.get_message(); field.next();)
                        switch (field.tag()) {
                        case 1: name = field.get_string(); break;
                        case 3: number = field.get_uint64(); break;
                        case 4: label = field.get_uint64() == 3 ? "repeated" : "optional"; break;
                        case 5: {
                            const auto known = types.find(field.get_uint64());
                            kind = known == types.end() ? "" : known->second;
                            break;
                        }
                        case 6: kind = field.get_string(); break;
                        case 8: field.skip(), options = " [packed = true]"; break;
                        default: field.skip();
                        }
                    fields.insert(message + ": " + label + " " + kind + " " + name + " = " + std::to_string(number) +
                                  options + ";");
                } else {
                    type.skip();
                }
            }
        }
    return fields;
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
    const std::string declared = cleared(protozero::pbf_reader{of_protoc}, Message::set);
    // Columns that the file should declare but does not.
    for (const std::string& field : fields_of(drawpoint::trace_descriptor()))
        BOOST_TEST(fields_of(declared).contains(field), "drawpoint_trace.proto should have " << field);
    BOOST_TEST((declared == drawpoint::trace_descriptor()));
}

BOOST_AUTO_TEST_SUITE_END()
