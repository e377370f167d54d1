#define BOOST_TEST_MODULE drawpoint
#include <boost/test/unit_test.hpp>
