#include "instrumentation/sampling/demangled.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace drawpoint {

std::string demangled(const char* name) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text{abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free};
    std::string plain = status == 0 && text ? text.get() : name;
    return plain.substr(0, plain.find(" [clone "));
}

}   // namespace drawpoint
