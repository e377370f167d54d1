#include <dlfcn.h>

#include <drawpoint/instrumentation/sampling/symbols.hpp>
#include "instrumentation/sampling/demangled.hpp"

namespace drawpoint {

struct Symbols::Impl {};

Symbols::Symbols() = default;
Symbols::~Symbols() = default;

std::vector<Frame> Symbols::frames_of(std::uint64_t address) {
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void*>(address), &info) == 0)
        return {{.function = "[unknown]"}};
    const std::string module = file_name_of(info.dli_fname != nullptr ? info.dli_fname : "");
    return {{.function = info.dli_sname != nullptr ? demangled(info.dli_sname) : "[" + module + "]", .file = module}};
}

std::string_view Symbols::library() noexcept { return "dladdr"; }

}   // namespace drawpoint
