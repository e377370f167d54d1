#include "python/core/lease.hpp"

namespace drawpoint::python {

Lease::Lease(std::shared_ptr<Leases> all, Batch batch) : all_{std::move(all)}, batch_{std::move(batch)} {
    const std::scoped_lock lock{all_->mutex};
    place_ = all_->lent.insert(all_->lent.end(), this);
    ++all_->alive;
}

void Lease::release() noexcept {
    if (references_.fetch_sub(1, std::memory_order_acq_rel) != 1)
        return;
    {
        const std::scoped_lock lock{all_->mutex};
        if (batch_) {
            all_->lent.erase(place_);
            batch_.reset();
        }
        --all_->alive;
    }
    delete this;
}

void Lease::leave_room(Leases& leases, std::size_t most) {
    const std::scoped_lock lock{leases.mutex};
    while (leases.lent.size() >= most) {
        Lease& oldest = *leases.lent.front();
        oldest.kept_ = oldest.batch_->keep_memory();
        oldest.batch_.reset();
        leases.lent.pop_front();
        ++leases.replaced;
    }
}

}   // namespace drawpoint::python
