// SampleMaker's functions for samples that cannot be made: noting them, skipping and substituting them.
#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "pipeline/loader/threads/sample_maker.hpp"

namespace drawpoint {

namespace {

std::string message_of(const std::exception_ptr& cause) {
    try {
        std::rethrow_exception(cause);
    } catch (const std::exception& error) {
        return error.what();
    } catch (...) {
        return "an exception that is no std::exception";
    }
}

}   // namespace

void SampleMaker::note_failure(Slot& s, const Failed& failed, std::exception_ptr cause,
                               std::mutex& mutex) const noexcept {
    try {
        std::string stage{failed.where ? failed.where : "fill"};
        if (!failed.where && failed.stage_count > 0)
            stage = stages_[std::min<std::size_t>(failed.stage_count, stages_.size()) - 1];
        std::string path;
        try {
            const bool collates = failed.where != nullptr && std::string_view{failed.where} == in_collate;
            if (failed.index < source_size_ && !collates)
                path = source_->path(failed.index);
        } catch (...) {
            path.clear();   // report the failure without a path
        }
        if (recorder_)
            recorder_->add_failure({.index = failed.index,
                                    .epoch = static_cast<std::uint32_t>(s.epoch),
                                    .batch = s.number,
                                    .pipeline = pipeline_,
                                    .path = path,
                                    .stage = stage,
                                    .message = message_of(cause)});
        const std::lock_guard lock{mutex};
        s.failed = true;
        s.failures.push_back({failed.at, failed.index, std::move(path), std::move(stage), std::move(cause)});
    } catch (...) {
        const std::lock_guard lock{mutex};
        s.failed = s.lost_failures = true;   // no memory for the message: the batch fails without one
    }
}

void SampleMaker::settle_failures(Slot& s) const noexcept {
    s.kept.reset();
    // Of a failure without memory for its message, nobody knows the position.
    if (on_error_ == OnError::raise || s.failures.empty() || s.lost_failures)
        return;
    if (!s.memory || (collate_ && !s.collation->samples))
        return;   // without memory there are no samples
    std::ranges::sort(s.failures, {}, &SampleFailure::at);
    const auto again = std::ranges::unique(s.failures, {}, &SampleFailure::at);
    s.failures.erase(again.begin(), again.end());
    if (s.failures.back().at == SampleFailure::whole_batch)
        return;
    const auto count = static_cast<std::uint32_t>(s.failures.size());
    if (on_error_ == OnError::skip) {
        auto failure = s.failures.begin();
        std::uint32_t to = 0;
        for (std::uint32_t from = 0; from < s.size; ++from)
            if (failure != s.failures.end() && failure->at == from)
                ++failure;
            else
                move_sample(s, from, to++);
        s.kept = s.size - count;
        return;
    }
    if (count == s.size)
        return;
    try {
        // From the last one back, each takes the sample after it, which is whole by then; the last ones the first whole
        // one.
        std::uint32_t first_whole = 0;
        while (first_whole < count && s.failures[first_whole].at == first_whole)
            ++first_whole;
        for (auto failure = s.failures.rbegin(); failure != s.failures.rend(); ++failure)
            copy_sample(s, failure->at + 1 < s.size ? failure->at + 1 : first_whole, failure->at);
        s.kept = s.size;
    } catch (const std::bad_alloc&) {
        // the failures are raised
    }
}

void SampleMaker::move_sample(Slot& s, std::uint32_t from, std::uint32_t to) const noexcept {
    if (from == to)
        return;
    s.indices[to] = s.indices[from];
    s.memory->targets()[to] = s.memory->targets()[from];
    if (collate_)
        std::swap(s.collation->samples[to], s.collation->samples[from]);
    else
        std::memcpy(s.memory->data() + to * sample_bytes_, s.memory->data() + from * sample_bytes_, sample_bytes_);
}

void SampleMaker::copy_sample(Slot& s, std::uint32_t from, std::uint32_t to) const {
    s.indices[to] = s.indices[from];
    s.memory->targets()[to] = s.memory->targets()[from];
    if (!collate_) {
        std::memcpy(s.memory->data() + to * sample_bytes_, s.memory->data() + from * sample_bytes_, sample_bytes_);
        return;
    }
    const SampleBuffer& whole = s.collation->samples[from];
    SampleBuffer& copy = s.collation->samples[to];
    const std::size_t before = copy.held();
    const std::span<std::byte> data = copy.reshape(whole.layout());
    s.collation->samples_held.fetch_add(copy.held() - before, std::memory_order_relaxed);
    std::ranges::copy(whole.data(), data.begin());
}

}   // namespace drawpoint
