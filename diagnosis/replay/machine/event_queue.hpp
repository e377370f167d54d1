#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace drawpoint {

/// A binary heap of events by time; those of the same time come in the order of their sequence numbers.
class EventQueue {
public:
    struct Event {
        std::int64_t at;
        std::uint32_t sequence;
        std::uint32_t whose;
        [[nodiscard]] bool before(const Event& other) const noexcept {
            return at != other.at ? at < other.at : sequence < other.sequence;
        }
    };

    void reserve(std::size_t events) { heap_.reserve(events); }
    [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }
    [[nodiscard]] const Event& front() const noexcept { return heap_.front(); }
    void push(const Event& event) {
        heap_.push_back(event);
        std::size_t at = heap_.size() - 1;
        while (at != 0 && event.before(heap_[(at - 1) / 2])) {
            heap_[at] = heap_[(at - 1) / 2];
            at = (at - 1) / 2;
        }
        heap_[at] = event;
    }
    Event pop() {
        const Event top = heap_.front(), last = heap_.back();
        heap_.pop_back();
        std::size_t at = 0;
        for (std::size_t child; (child = 2 * at + 1) < heap_.size(); at = child) {
            child += child + 1 < heap_.size() && heap_[child + 1].before(heap_[child]);
            if (!heap_[child].before(last))
                break;
            heap_[at] = heap_[child];
        }
        if (!heap_.empty())
            heap_[at] = last;
        return top;
    }
    /// Makes all events earlier by `by`; their order stays.
    void shift(std::int64_t by) noexcept {
        for (Event& event : heap_)
            event.at -= by;
    }

private:
    std::vector<Event> heap_;
};

}   // namespace drawpoint
