#include "pipeline/loader/core/loader_state.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>

#include <sys/stat.h>

#include <drawpoint/pipeline/loader/core/detail/batch_digest.hpp>
#include <drawpoint/pipeline/loader/machine/loader_setting.hpp>

namespace drawpoint {

namespace {

// magic, version, then numbers of 7 bits a byte, lowest first; the fingerprints, the seed and the checksum have 8
// bytes.
constexpr std::string_view magic = "drawpoint";
constexpr char version = 1;
constexpr std::size_t most_probes = 64, most_whole_order = 1u << 17;

[[noreturn]] void refuse(const std::string& what) { throw std::invalid_argument{"state of a loader: " + what}; }

void put(std::string& to, std::uint64_t number) {
    for (; number >= 128; number >>= 7)
        to += static_cast<char>(number | 128);
    to += static_cast<char>(number);
}

void put_whole(std::string& to, std::uint64_t number) { to.append(reinterpret_cast<const char*>(&number), 8); }

std::uint64_t checksum(std::string_view bytes) noexcept {
    BatchDigest digest;
    digest.add(std::as_bytes(std::span{bytes}));
    return digest.value();
}

class Reader {
public:
    explicit Reader(std::string_view bytes) noexcept : left_{bytes} {}
    [[nodiscard]] std::uint64_t number() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const auto byte = static_cast<unsigned char>(take(1)[0]);
            if (shift == 63 && byte > 1)
                break;
            value |= std::uint64_t{byte & 127u} << shift;
            if (byte < 128)
                return value;
        }
        refuse("a number does not fit 64 bits");
    }
    [[nodiscard]] std::uint64_t whole() {
        std::uint64_t value = 0;
        std::memcpy(&value, take(8).data(), 8);
        return value;
    }
    [[nodiscard]] bool at_end() const noexcept { return left_.empty(); }

private:
    std::string_view take(std::size_t count) {
        if (left_.size() < count)
            refuse("cut short");
        const std::string_view taken = left_.substr(0, count);
        left_.remove_prefix(count);
        return taken;
    }
    std::string_view left_;
};

/// The last two parts of a path, so that a data set may move.
std::string_view name_in(std::string_view path) noexcept {
    const std::size_t last = path.rfind('/');
    const std::size_t before = last == path.npos || last == 0 ? path.npos : path.rfind('/', last - 1);
    return before == path.npos ? path : path.substr(before + 1);
}

void add(BatchDigest& digest, std::uint64_t number) noexcept { digest.add(std::as_bytes(std::span{&number, 1})); }

}   // namespace

std::string to_bytes(const LoaderState& state) {
    std::string bytes{magic};
    bytes += version;
    put_whole(bytes, state.data);
    put_whole(bytes, state.order);
    put_whole(bytes, state.seed);
    for (const std::uint64_t number : {state.batch_size, std::uint64_t{state.drop_last}, state.rank, state.ranks,
                                       state.batches, state.epoch, state.end, std::uint64_t{state.undrawn.size()}})
        put(bytes, number);
    std::uint64_t after = 0;
    for (const std::uint64_t number : state.undrawn) {
        put(bytes, number - after);
        after = number + 1;
    }
    put_whole(bytes, checksum(bytes));
    return bytes;
}

LoaderState parse_state(std::string_view bytes) {
    if (!bytes.starts_with(magic))
        refuse("not one");
    if (bytes.size() == magic.size() || bytes[magic.size()] != version)
        refuse("of another version than " + std::to_string(version) + ", which this program reads");
    if (bytes.size() < magic.size() + 1 + 8)
        refuse("cut short");
    const std::string_view covered = bytes.substr(0, bytes.size() - 8);
    if (Reader{bytes.substr(covered.size())}.whole() != checksum(covered))
        refuse("damaged, or cut short: its checksum does not fit");
    Reader reader{covered.substr(magic.size() + 1)};
    LoaderState state;
    state.data = reader.whole();
    state.order = reader.whole();
    state.seed = reader.whole();
    state.batch_size = reader.number();
    const std::uint64_t drop_last = reader.number();
    state.rank = reader.number();
    state.ranks = reader.number();
    state.batches = reader.number();
    state.epoch = reader.number();
    state.end = reader.number();
    const std::uint64_t undrawn = reader.number();
    state.drop_last = drop_last == 1;
    const bool fits = state.batch_size >= 1 && state.batch_size <= loader_limits::most_batch_size && drop_last <= 1 &&
                      state.rank < state.ranks && state.end <= state.batches &&
                      undrawn <= loader_limits::most_prefetch_depth + 1;
    if (!fits)
        refuse("a number is out of range");
    std::uint64_t after = 0;
    for (std::uint64_t i = 0; i < undrawn; ++i) {
        const std::uint64_t gap = reader.number();
        if (after >= state.end || gap >= state.end - after)
            refuse("a number is out of range");
        state.undrawn.push_back(after + gap);
        after = state.undrawn.back() + 1;
    }
    if (!reader.at_end())
        refuse("too long");
    return state;
}

LoaderState continued_by(const LoaderState& from, LoaderState to) {
    const auto same = [](const char* what, std::uint64_t there, std::uint64_t here) {
        if (there != here)
            refuse(std::string{"its "} + what + " is " + std::to_string(there) + ", here it is " +
                   std::to_string(here));
    };
    if (from.data != to.data)
        refuse("of another data set");
    if (from.order != to.order)
        refuse("of another order of samples (sampler, or its seed)");
    same("seed", from.seed, to.seed);
    same("drop_last", from.drop_last, to.drop_last);
    to.epoch = from.epoch;
    if (from.batch_size == to.batch_size && from.rank == to.rank && from.ranks == to.ranks) {
        same("number of batches a pass", from.batches, to.batches);
        to.end = from.end;
        to.undrawn = from.undrawn;
        return to;
    }
    if (from.drawn() == from.batches) {
        to.end = to.batches;
        return to;
    }
    if (!from.undrawn.empty())
        refuse("batches were drawn out of order, so it can be continued only with the same batch_size, rank and ranks");
    const std::uint64_t samples = from.end * from.batch_size * from.ranks, at_once = to.batch_size * to.ranks;
    to.end = samples / at_once;
    if (samples % at_once != 0 || to.end > to.batches)
        refuse("it is after " + std::to_string(samples) + " samples, which is not a whole number of batches of " +
               std::to_string(to.batch_size) + " on ranks = " + std::to_string(to.ranks));
    return to;
}

std::uint64_t fingerprint_of(const SampleSource& source) {
    BatchDigest digest;
    const std::size_t size = source.size(), probes = std::min(size, most_probes);
    add(digest, size);
    const SampleReads* const reads = source.reads();
    for (std::size_t i = 0; i < probes; ++i) {
        const std::uint64_t index = probes < 2 ? 0 : i * (size - 1) / (probes - 1);
        const std::string path = source.path(index);
        const auto range = reads != nullptr ? reads->location(index) : std::nullopt;
        struct stat status{};
        const std::string_view name = name_in(path);
        digest.add(std::as_bytes(std::span{name}));
        if (range && range->bytes != FileRange::whole) {
            add(digest, range->offset);
            add(digest, range->bytes);
        } else if (!path.empty() && ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode)) {
            add(digest, static_cast<std::uint64_t>(status.st_size));
        }
    }
    return digest.value();
}

std::uint64_t fingerprint_of(const Sampler& sampler) {
    const Sampler& whole = *sampler.share().of;
    const std::size_t size = whole.size();
    BatchDigest digest;
    add(digest, size);
    if (size == 0)
        return digest.value();
    if (const OrderParts* const parts = whole.parts(); parts != nullptr && size > most_whole_order) {
        std::array<std::uint64_t, most_probes> indices{};
        const std::size_t probes = most_probes;
        const std::uint64_t stride = (size - 1) / (probes - 1);
        for (const std::size_t epoch : {0u, 1u}) {
            const std::span<std::uint64_t> part{indices.data(), probes};
            parts->part(epoch, 0, stride, part);
            digest.add(std::as_bytes(part));
        }
        return digest.value();
    }
    std::vector<std::uint64_t> order(size);
    whole.order(0, order);
    digest.add(std::as_bytes(std::span{order}));
    return digest.value();
}

}   // namespace drawpoint
