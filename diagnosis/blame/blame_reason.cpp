#include "diagnosis/blame/blame_parts.hpp"

#include <drawpoint/instrumentation/text/printable.hpp>

namespace drawpoint {

std::string reason_of(const Ledger& ledger, const DrawBlame& draw, const BlamePiece& piece) {
    const auto sample = [&](std::uint32_t i) {
        return i == nothing ? std::string{"a sample"} : "sample " + std::to_string(ledger.samples[i].index);
    };
    const auto worker = [&](std::uint32_t i) {
        return i == nothing ? std::string{"a worker"} : "worker " + std::to_string(ledger.samples[i].worker);
    };
    switch (piece.cause) {
    case Cause::callbacks: return "callbacks of before_draw ran";
    case Cause::sampler: return "the sampler was computing the order of the pass's samples";
    case Cause::admission: return "the batch was not admitted yet: its pass had just begun, or all slots were taken";
    case Cause::budget: return "the memory budget had no room for the batch yet";
    case Cause::worker: return "the batch was admitted and no worker was free to begin it";
    case Cause::read: return worker(piece.sample) + " waited for the bytes of " + sample(piece.sample);
    case Cause::stage: {
        std::string text = sample(piece.sample) + " was still in " + printable(name_of(ledger, draw, piece)) + " on " +
                           worker(piece.sample);
        return piece.sample == draw.last_sample ? text + ", the last of its batch" : text;
    }
    case Cause::other_samples:
        return "the workers were at other samples of the batch before they came to its last, " +
               sample(draw.last_sample);
    case Cause::collate_queue: return "the batch's samples were made and nobody collated them yet";
    case Cause::collate: return "the batch was being collated";
    case Cause::transfer_queue: return "the batch was made and its copy to the device had not begun";
    case Cause::transfer:
        return is_of_pytorch(ledger, draw) ? "the batch was on its way from its worker's process"
                                           : "the batch was being copied to the device";
    case Cause::order: return "the batch was complete and an older one had to come first";
    case Cause::handoff: return "the batch was there and the loop had not resumed";
    case Cause::hidden: return "while the device had work: this cost nothing";
    case Cause::unknown: break;
    }
    return draw.batch != nothing ? "the batch's records do not show the cause"
                                 : "the batch of this draw was not recorded";
}

}   // namespace drawpoint
