// The libFuzzer program for all readers of files. DRAWPOINT_FUZZ_TARGET names the one. Built with DRAWPOINT_FUZZ=ON.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const drawpoint::test::FuzzTarget* const target = [] {
        const char* const name = std::getenv("DRAWPOINT_FUZZ_TARGET");
        const auto* const found = name != nullptr ? drawpoint::test::fuzz_target(name) : nullptr;
        if (found == nullptr) {
            std::fputs("set DRAWPOINT_FUZZ_TARGET to one of:", stderr);
            for (const auto& one : drawpoint::test::fuzz_targets())
                std::fprintf(stderr, " %s", one.name.data());
            std::fputs("\n", stderr);
            std::exit(2);
        }
        return found;
    }();
    target->run({reinterpret_cast<const std::byte*>(data), size});
    return 0;
}
