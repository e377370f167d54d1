#include "pipeline/loader/reading/io_ring.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include <fcntl.h>

namespace drawpoint {

namespace {

constexpr std::size_t most_at_once = std::size_t{1} << 30;   // bytes of one read

bool has_operations(io_uring& ring) noexcept {
    io_uring_probe* const probe = ::io_uring_get_probe_ring(&ring);
    const bool all = probe != nullptr && ::io_uring_opcode_supported(probe, IORING_OP_OPENAT) != 0 &&
                     ::io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                     ::io_uring_opcode_supported(probe, IORING_OP_ASYNC_CANCEL) != 0;
    if (probe != nullptr)
        ::io_uring_free_probe(probe);
    return all;
}

}   // namespace

IoRing::IoRing(unsigned entries, unsigned completions) {
    io_uring_params parameters{};
    parameters.flags = IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE;
    parameters.cq_entries = completions;
    int error = -::io_uring_queue_init_params(entries, &ring_, &parameters);
    if (error <= 0) {
        if (has_operations(ring_))
            return;
        ::io_uring_queue_exit(&ring_);
        error = ENOSYS;
    }
    throw std::system_error{error, std::generic_category(), "io_uring_setup"};
}

IoRing::~IoRing() { ::io_uring_queue_exit(&ring_); }

void IoRing::limit_kernel_threads(unsigned most) noexcept {
    std::array<unsigned, 2> limits{most, 0};
    (void)::io_uring_register_iowq_max_workers(&ring_, limits.data());
}

io_uring_sqe& IoRing::free_entry() noexcept {
    io_uring_sqe* entry = ::io_uring_get_sqe(&ring_);
    while (entry == nullptr) {   // the queue is full: submitting empties it
        ::io_uring_submit(&ring_);
        entry = ::io_uring_get_sqe(&ring_);
    }
    return *entry;
}

void IoRing::open(const char* path, int flags, std::uint64_t id) noexcept {
    io_uring_sqe& entry = free_entry();
    ::io_uring_prep_openat(&entry, AT_FDCWD, path, flags, 0);
    ::io_uring_sqe_set_data64(&entry, id);
}

void IoRing::read(int descriptor, std::span<std::byte> to, std::uint64_t offset, std::uint64_t id) noexcept {
    io_uring_sqe& entry = free_entry();
    const auto bytes = static_cast<unsigned>(std::min(to.size(), most_at_once));
    ::io_uring_prep_read(&entry, descriptor, to.data(), bytes, offset);
    ::io_uring_sqe_set_data64(&entry, id);
}

void IoRing::pause(__kernel_timespec& time, std::uint64_t id) noexcept {
    io_uring_sqe& entry = free_entry();
    ::io_uring_prep_timeout(&entry, &time, 0, 0);
    ::io_uring_sqe_set_data64(&entry, id);
}

void IoRing::cancel(std::uint64_t which, std::uint64_t id) noexcept {
    io_uring_sqe& entry = free_entry();
    ::io_uring_prep_cancel64(&entry, which, 0);
    ::io_uring_sqe_set_data64(&entry, id);
}

void IoRing::submit() noexcept { ::io_uring_submit(&ring_); }

void IoRing::submit_and_wait() noexcept { ::io_uring_submit_and_wait(&ring_, 1); }

std::optional<IoRing::Completion> IoRing::next_completion() noexcept {
    io_uring_cqe* entry = nullptr;
    if (::io_uring_peek_cqe(&ring_, &entry) != 0)
        return std::nullopt;
    const Completion completion{::io_uring_cqe_get_data64(entry), entry->res};
    ::io_uring_cqe_seen(&ring_, entry);
    return completion;
}

}   // namespace drawpoint
