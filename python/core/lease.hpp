#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <drawpoint/pipeline/loader/core/batch_slots.hpp>
#include <drawpoint/pipeline/loader/core/sample_source.hpp>

namespace drawpoint::python {

class Lease;

/// The batches of a loader that arrays still use, oldest first. Shared by the loader and its leases. Any thread.
struct Leases {
    std::mutex mutex;         // of all that follows, and of the leases' batches
    std::list<Lease*> lent;   // those that occupy a slot of the loader
    std::size_t alive = 0, replaced = 0;
};

/// A drawn batch that goes back to its loader with the last array over it, from whatever thread that is dropped. The
/// loader may take the slot back before: then the arrays keep the memory.
class Lease {
public:
    Lease(std::shared_ptr<Leases> all, Batch batch);
    void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
    void release() noexcept;

    /// Takes slots back from the oldest batches until fewer than `most` are lent. Throws std::bad_alloc.
    static void leave_room(Leases&, std::size_t most);

private:
    ~Lease() = default;

    std::shared_ptr<Leases> all_;
    std::atomic<std::uint32_t> references_{1};
    std::optional<Batch> batch_;
    std::list<Lease*>::iterator place_;
    KeptMemory kept_;
};

/// Holds a reference to a lease.
class LeaseRef {
public:
    explicit LeaseRef(Lease* adopted) noexcept : lease_{adopted} {}
    LeaseRef(const LeaseRef& other) noexcept : lease_{other.lease_} {
        if (lease_)
            lease_->retain();
    }
    LeaseRef(LeaseRef&& other) noexcept : lease_{std::exchange(other.lease_, nullptr)} {}
    LeaseRef& operator=(LeaseRef other) noexcept {
        std::swap(lease_, other.lease_);
        return *this;
    }
    ~LeaseRef() {
        if (lease_)
            lease_->release();
    }

private:
    Lease* lease_;
};

/// An array over a batch's memory.
struct Array {
    LeaseRef lease;
    void* data = nullptr;
    ScalarType type = ScalarType::float32;
    std::size_t rank = 1;
    std::array<std::int64_t, 6> shape{};
};

}   // namespace drawpoint::python
