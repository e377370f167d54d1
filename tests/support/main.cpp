#include <boost/test/unit_test.hpp>

// Written out, since BOOST_TEST_MODULE has no effect after the precompiled header, which includes Boost.Test as well.
int main(int argc, char** argv) {
    return boost::unit_test::unit_test_main(
        [] {
            boost::unit_test::framework::master_test_suite().p_name.value = "drawpoint";
            return true;
        },
        argc, argv);
}
