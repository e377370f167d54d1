#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Where definitions stand in a file, as something before them may be lost.
struct DefinitionPlaces {
    std::uint32_t names_before = 0, frames_before = 0, stacks_before = 0;   ///< how many there are
    std::vector<std::uint32_t> threads;                                     ///< position of each of `threads`
};

/// What operators, allocations and stack samples refer to by position. In this order, each refers only to earlier ones.
struct Definitions {
    std::vector<std::string> names;
    std::vector<ThreadRow> threads;   ///< a row whose device and tid came before renames that thread
    std::vector<FrameRow> frames;
    std::vector<StackRow> stacks;
    std::optional<DefinitionPlaces> places;   ///< of a file

    [[nodiscard]] bool empty() const noexcept {
        return names.empty() && threads.empty() && frames.empty() && stacks.empty();
    }
};

using ThreadPositions = std::map<std::pair<std::int32_t, std::uint64_t>, std::size_t>;   // by device and tid
/// Adds those of `added` that are new, and renames the others.
void add_threads(std::vector<ThreadRow>& threads, ThreadPositions&, std::span<const ThreadRow> added);

/// Gives equal definitions equal positions, and passes new ones on in the order in which they came. Any thread. Returns
/// `nothing` if memory runs out, or if a row refers to something that was never added.
class DefinitionTable {
public:
    /// Keeps at most this many bytes of names, frames and stacks; those beyond it are `nothing`.
    explicit DefinitionTable(std::uint64_t most_bytes = ~std::uint64_t{0}) noexcept : most_bytes_{most_bytes} {}

    std::uint32_t add_name(std::string_view) noexcept;
    std::uint32_t add_thread(const ThreadRow&) noexcept;
    /// The calling thread. If `name` is empty and the thread has no name yet, it gets the system's name for it.
    std::uint32_t add_this_thread(std::string_view name) noexcept;
    std::uint32_t add_frame(const FrameRow&) noexcept;
    std::uint32_t add_stack(const StackRow&) noexcept;

    /// What was added since the last call. Throws std::bad_alloc.
    [[nodiscard]] Definitions take();

private:
    struct Hash {
        template <class Key>
        std::size_t operator()(const Key& key) const noexcept {
            std::uint64_t hash = 0;
            for (const std::uint64_t part : key)
                hash = (hash ^ part) * 0x9e37'79b9'7f4a'7c15u ^ hash >> 29;
            return static_cast<std::size_t>(hash ^ hash >> 32);
        }
    };
    using Key2 = std::array<std::uint64_t, 2>;
    using Key3 = std::array<std::uint64_t, 3>;

    /// Whether this many bytes may be added; counts them.
    bool takes(std::size_t bytes) noexcept;

    const std::uint64_t most_bytes_;
    std::mutex mutex_;
    std::uint64_t bytes_ = 0;
    std::deque<std::string> texts_;   // these do not move: `names_` has views of them
    std::unordered_map<std::string_view, std::uint32_t> names_;
    std::unordered_map<Key2, std::uint32_t, Hash> threads_;
    std::vector<bool> named_;   // by thread: whether it has a name
    std::unordered_map<Key3, std::uint32_t, Hash> frames_;
    std::unordered_map<Key2, std::uint32_t, Hash> stacks_;
    Definitions fresh_;
};

}   // namespace drawpoint
