#include "instrumentation/sampling/stack_walk.hpp"

#include <pthread.h>
#include <ucontext.h>

#include <algorithm>
#include <bit>

// These functions read other functions' frames, including the red zones that a sanitizer puts around their variables.
#define DRAWPOINT_READS_FOREIGN_STACK __attribute__((no_sanitize("address", "thread", "undefined"), noinline))

namespace drawpoint {

DRAWPOINT_READS_FOREIGN_STACK Interrupted interrupted_by(const void* context) noexcept {
    const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
    Interrupted at;
#if defined(__x86_64__)
    at.pc = static_cast<std::uint64_t>(machine.gregs[REG_RIP]);
    at.sp = static_cast<std::uint64_t>(machine.gregs[REG_RSP]);
    at.fp = static_cast<std::uint64_t>(machine.gregs[REG_RBP]);
    const auto* const code = reinterpret_cast<const volatile unsigned char*>(at.pc);
    // Near the start of a page the previous page may be unmapped; no module has a system call that early.
    at.in_system_call = (at.pc & 0xfffu) >= 2 && code[-2] == 0x0f && code[-1] == 0x05;
#elif defined(__aarch64__)
    at.pc = machine.pc;
    at.sp = machine.sp;
    at.fp = machine.regs[29];
    at.in_system_call =
        (at.pc & 0xfffu) >= 4 && *reinterpret_cast<const volatile std::uint32_t*>(at.pc - 4) == 0xd400'0001u;   // svc 0
#else
#error "drawpoint's timer sampling knows the registers of x86-64 and AArch64 only"
#endif
    return at;
}

std::uint64_t stack_limit(std::uint64_t sp, std::uint64_t mapping_end) noexcept {
    constexpr std::uint64_t most_bytes = 16u << 20;
    const std::uint64_t block = std::bit_cast<std::uintptr_t>(pthread_self());   // the main thread's is elsewhere
    const std::uint64_t end = mapping_end - sp > most_bytes ? sp + most_bytes : mapping_end;
    return sp < block ? std::min(end, block) : end;
}

DRAWPOINT_READS_FOREIGN_STACK std::size_t walk_stack(const Interrupted& at, std::uint64_t stack_end,
                                                     std::span<std::uint64_t> addresses) noexcept {
    if (addresses.empty())
        return 0;
    addresses[0] = at.pc;
    std::size_t count = 1;
    std::uint64_t below = at.sp;
    for (std::uint64_t frame = at.fp; count < addresses.size();) {
        if (frame < below || frame % sizeof(std::uint64_t) != 0 || stack_end < 16 || frame > stack_end - 16)
            break;
        const auto* const words = reinterpret_cast<const volatile std::uint64_t*>(frame);
        const std::uint64_t caller_frame = words[0], return_address = words[1];
        if (return_address < 4096)
            break;
        addresses[count++] = return_address;
        below = frame + 16;   // addresses must grow, so the loop ends
        frame = caller_frame;
    }
    return count;
}

}   // namespace drawpoint
