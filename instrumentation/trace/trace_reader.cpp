#include <drawpoint/instrumentation/trace/trace.hpp>

#include "instrumentation/trace/trace_blocks.hpp"

namespace drawpoint {

ReadTrace read_trace(const std::filesystem::path& path, std::uint64_t most_bytes) {
    TraceBlocks blocks{path, most_bytes};
    ReadTrace read;
    std::string place;
    try {
        blocks.read_all();
        place = blocks.message();
        read.damaged = blocks.is_damaged();
    } catch (const TraceDamage& damage) {
        if (!blocks.parser().has_run())
            throw TraceError(path.string() + ": " + (blocks.is_ours() ? "" : "not a recording, or damaged: ") +
                             damage.what);
        place = damage.what;
        read.damaged = true;
    }
    if (!place.empty())
        read.warning = path.string() + ": " + place;
    read.ledger = blocks.parser().take();
    return read;
}

}   // namespace drawpoint
