#pragma once

#include <ostream>

#include <drawpoint/diagnosis/verdict/words.hpp>

namespace drawpoint {

/// Lets BOOST_TEST print what it compares.
inline std::ostream& boost_test_print_type(std::ostream& out, Verdict verdict) { return out << to_string(verdict); }
inline std::ostream& boost_test_print_type(std::ostream& out, Lever lever) { return out << words_of(lever).key; }

}   // namespace drawpoint
