#include <boost/test/unit_test.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>

#include <drawpoint/instrumentation/host/host.hpp>
#include <drawpoint/instrumentation/sampling/symbols.hpp>

namespace sampled {

inline constexpr unsigned first_line = __LINE__ + 1;
[[gnu::noinline]] int named_function(int x) {
    volatile int y = x;
    return y + 1;
}

}   // namespace sampled

namespace {

using namespace drawpoint;

template <class Function>
std::uint64_t address_of(Function* function) {
    return reinterpret_cast<std::uint64_t>(function);
}

}   // namespace

BOOST_AUTO_TEST_SUITE(symbols)

BOOST_AUTO_TEST_CASE(an_address_of_this_program_has_its_functions_name_file_and_line) {
    Symbols symbols;
    const Frame frame = symbols.frame_of(address_of(&sampled::named_function) + 1);
    if (Symbols::library() == "libdw") {
        BOOST_TEST(frame.function == "sampled::named_function(int)");
        BOOST_TEST(frame.file.ends_with("symbols_test.cpp"));
        BOOST_TEST(frame.first_line == sampled::first_line);
        BOOST_TEST((frame.line >= sampled::first_line && frame.line <= sampled::first_line + 3));
        BOOST_TEST(!frame.inlined);
    } else {
        BOOST_TEST(!frame.file.empty());
    }
}

BOOST_AUTO_TEST_CASE(an_address_in_code_with_scarce_debug_information_has_file_and_line) {
    Symbols symbols;
    const Frame frame = symbols.frame_of(address_of(&usable_cores) + 1);   // built with -g1
    BOOST_TEST(frame.function == "drawpoint::usable_cores()");
    if (Symbols::library() == "libdw") {
        BOOST_TEST(frame.file.ends_with("host.cpp"));
        BOOST_TEST(frame.line != 0u);
    }
}

BOOST_AUTO_TEST_CASE(an_address_of_a_library_has_the_librarys_name_and_no_line) {
    Symbols symbols;
    const Frame frame = symbols.frame_of(address_of(&std::getenv));
    BOOST_TEST(frame.function.find("getenv") != std::string::npos);
    BOOST_TEST(frame.line == 0u);
    BOOST_TEST(!frame.file.empty());
    BOOST_TEST(frame.file.find('/') == std::string::npos);
}

BOOST_AUTO_TEST_CASE(an_address_that_is_no_code_is_unknown) {
    Symbols symbols;
    const auto frames = symbols.frames_of(16);
    BOOST_REQUIRE_EQUAL(frames.size(), 1u);
    BOOST_TEST(frames[0].function == "[unknown]");
    BOOST_TEST(frames[0].file.empty());
}

BOOST_AUTO_TEST_SUITE_END()
