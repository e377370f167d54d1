#include "pipeline/storage/tar_streams.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

#include <drawpoint/pipeline/storage/tar_shards.hpp>

namespace drawpoint {

namespace {

constexpr std::size_t stream_buffer = std::size_t{1} << 20;
constexpr std::uint64_t reserved_at_most = std::uint64_t{1} << 20;

}   // namespace

void reserve_image(std::vector<std::byte>& contents, std::uint64_t bytes, std::uint64_t largest) {
    if (bytes > contents.capacity())
        contents.reserve(static_cast<std::size_t>(std::bit_ceil(std::max(bytes, std::min(largest, reserved_at_most)))));
    contents.resize(static_cast<std::size_t>(bytes));
}

void check_tar_header(const TarShard& shard, std::size_t sample, const TarBlock& header) {
    if (!is_tar_header(header))
        throw TarError{shard.path, shard.index.offsets[sample] - tar_block,
                       "no header of '" + std::string{shard.index.name(sample)} +
                           "': the file has changed since it was indexed"};
}

class TarStreams::Stream {
public:
    Stream(std::size_t held, std::uint64_t largest) : input_{stream_buffer}, held_at_most_{held}, largest_{largest} {
        held_.reserve(held);
        images_.reserve(held);
    }

    // Under the owner's mutex:
    const TarShard* shard = nullptr;
    std::size_t users = 0;
    std::uint64_t last_lent = 0;

    void turn_to(const TarShard& other) noexcept {
        shard = &other;
        input_.close();
        held_.clear();
    }

    void read(std::size_t sample, std::vector<std::byte>& contents, std::atomic<std::uint64_t>& started) {
        const std::lock_guard lock{mutex_};
        if (take(sample, contents))
            return;
        try {
            if (!input_.is_open() || sample < next_) {
                input_.open(shard->path.c_str());
                next_ = 0;
                started.fetch_add(1, std::memory_order_relaxed);
            }
            while (next_ < sample)
                pass_by();
            read_next(contents);
            if (next_ == shard->index.size())
                finish();
        } catch (...) {
            input_.close();   // it stands nobody knows where
            throw;
        }
    }

private:
    struct Held {
        std::size_t sample;
        std::uint64_t since;
    };

    auto find(std::size_t sample) noexcept { return std::ranges::find(held_, sample, &Held::sample); }

    bool take(std::size_t sample, std::vector<std::byte>& contents) noexcept {
        const auto found = find(sample);
        if (found == held_.end())
            return false;
        const auto at = static_cast<std::size_t>(found - held_.begin());
        contents.swap(images_[at]);
        // Memory of those taken gathers behind that of those held, for the next ones.
        images_[at].swap(images_[held_.size() - 1]);
        held_[at] = held_.back();
        held_.pop_back();
        return true;
    }

    void pass_by() {
        if (find(next_) != held_.end()) {
            ++next_;   // after a new start; the bytes are passed by with the next ones
            return;
        }
        std::size_t at = held_.size();
        if (at == held_at_most_) {   // the one held longest goes
            at = static_cast<std::size_t>(std::ranges::min_element(held_, {}, &Held::since) - held_.begin());
            images_[at].swap(images_[held_.size() - 1]);
            held_[at] = held_.back();
            held_.pop_back();
            at = held_.size();
        } else if (at == images_.size()) {
            images_.emplace_back();
        }
        const std::size_t sample = next_;
        read_next(images_[at]);
        held_.push_back({sample, ++passed_});
    }

    void read_next(std::vector<std::byte>& contents) {
        const std::uint64_t offset = shard->index.offsets[next_], bytes = shard->index.bytes[next_];
        input_.skip(offset - tar_block - input_.position());
        TarBlock header;
        const bool whole = input_.read(header) == tar_block;
        if (whole)
            check_tar_header(*shard, next_, header);
        reserve_image(contents, bytes, largest_);
        if (!whole || input_.read(contents) < bytes)
            throw TarError{shard->path, offset, "the archive ends too early"};
        ++next_;
    }

    // The compressed data's own checksum stands at its end; members and padding before it are held to the scan's
    // limits.
    void finish() {
        if (input_.compression() != TarCompression::none) {
            const std::size_t last = shard->index.size() - 1;
            TarReader rest{input_, shard->index.offsets[last] + tar_padded(shard->index.bytes[last])};
            while (rest.next(behind_)) {
            }
        }
        input_.close();
    }

    std::mutex mutex_;
    TarInput input_;
    TarMember behind_;       // the last image; kept for its memory
    std::size_t next_ = 0;   // sample of the shard
    std::size_t held_at_most_;
    std::uint64_t largest_, passed_ = 0;
    std::vector<Held> held_;
    std::vector<std::vector<std::byte>> images_;   // of held_, in its order; behind them memory to be used again
};

TarStreams::TarStreams(std::size_t open_streams, std::size_t held, std::uint64_t largest_image) noexcept
    : open_streams_{open_streams}, held_{held}, largest_{largest_image} {}
TarStreams::~TarStreams() = default;

TarStreams::Stream& TarStreams::lend(const TarShard& shard) {
    const std::lock_guard lock{mutex_};
    Stream* stream = nullptr;
    Stream* idle = nullptr;   // the one used longest ago
    for (const auto& candidate : streams_) {
        if (candidate->shard == &shard)
            stream = candidate.get();
        else if (candidate->users == 0 && (!idle || candidate->last_lent < idle->last_lent))
            idle = candidate.get();
    }
    if (!stream) {
        if (!idle || streams_.size() < open_streams_) {
            streams_.push_back(std::make_unique<Stream>(held_, largest_));
            idle = streams_.back().get();
        }
        stream = idle;
        stream->turn_to(shard);
    }
    ++stream->users;
    stream->last_lent = ++lent_;
    return *stream;
}

void TarStreams::read(const TarShard& shard, std::size_t sample, std::vector<std::byte>& contents) {
    Stream& stream = lend(shard);
    struct GiveBack {
        TarStreams& streams;
        Stream& stream;
        ~GiveBack() {
            std::unique_ptr<Stream> over;   // closed behind the lock
            const std::lock_guard lock{streams.mutex_};
            auto& all = streams.streams_;
            if (--stream.users > 0 || all.size() <= streams.open_streams_)
                return;
            const auto place = std::ranges::find(all, &stream, &std::unique_ptr<Stream>::get);
            over = std::move(*place);
            all.erase(place);
        }
    } const give_back{*this, stream};
    stream.read(sample, contents, started_);
}

}   // namespace drawpoint
