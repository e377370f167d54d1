#include <drawpoint/diagnosis/blame/blame.hpp>

namespace drawpoint {

std::string_view to_string(Cause cause) noexcept {
    switch (cause) {
    case Cause::callbacks: return "callbacks";
    case Cause::sampler: return "sampler";
    case Cause::admission: return "admission";
    case Cause::budget: return "budget";
    case Cause::worker: return "worker";
    case Cause::read: return "read";
    case Cause::stage: return "stage";
    case Cause::other_samples: return "other_samples";
    case Cause::collate_queue: return "collate_queue";
    case Cause::collate: return "collate";
    case Cause::transfer_queue: return "transfer_queue";
    case Cause::transfer: return "transfer";
    case Cause::order: return "order";
    case Cause::handoff: return "handoff";
    case Cause::hidden: return "hidden";
    case Cause::unknown: break;
    }
    return "unknown";
}

std::string_view to_string(Spent spent) noexcept {
    switch (spent) {
    case Spent::computing: return "computing";
    case Spent::run_queue: return "run_queue";
    case Spent::waiting: return "waiting";
    case Spent::unknown: break;
    }
    return "unknown";
}

}   // namespace drawpoint
