#include <drawpoint/instrumentation/trace/trace_follower.hpp>

#include <drawpoint/instrumentation/trace/trace.hpp>

#include "instrumentation/trace/trace_blocks.hpp"

namespace drawpoint {

struct TraceFollower::Impl {
    std::string path;
    TraceBlocks blocks;
    std::string unreadable{};   // why nothing more can be read
};

TraceFollower::TraceFollower(const std::filesystem::path& path, std::uint64_t most_bytes)
    : impl_{new Impl{.path = path.string(), .blocks = {path, most_bytes}}} {}

TraceFollower::~TraceFollower() = default;

bool TraceFollower::read(std::uint64_t most_bytes) { return read(false, most_bytes); }

void TraceFollower::read_rest() { (void)read(true, 0); }

bool TraceFollower::read(bool rest, std::uint64_t most_bytes) {
    if (!impl_->unreadable.empty())
        return false;
    const std::uint64_t before = impl_->blocks.position();
    try {
        if (rest)
            impl_->blocks.read_all();
        else
            impl_->blocks.read_some(most_bytes);
    } catch (const TraceDamage& damage) {
        if (!impl_->blocks.parser().has_run())
            throw TraceError(impl_->path + ": " + (impl_->blocks.is_ours() ? "" : "not a recording, or damaged: ") +
                             damage.what);
        impl_->unreadable = damage.what;
    }
    return impl_->blocks.position() > before;
}

Ledger TraceFollower::ledger() const { return impl_->blocks.parser().ledger(); }

const Ledger& TraceFollower::rows() const noexcept { return impl_->blocks.parser().rows(); }

std::string TraceFollower::warning() const {
    const std::string what = impl_->unreadable.empty() ? impl_->blocks.message() : impl_->unreadable;
    return what.empty() ? what : impl_->path + ": " + what;
}

}   // namespace drawpoint
