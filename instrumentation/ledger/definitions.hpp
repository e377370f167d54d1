#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// What operators, allocations and stack samples name by its position. In this order each names only what stands before it.
struct Definitions {
    std::vector<std::string> names;
    std::vector<ThreadRow> threads;   ///< one whose device and tid came before is a new name for it
    std::vector<FrameRow> frames;
    std::vector<StackRow> stacks;

    [[nodiscard]] bool empty() const noexcept {
        return names.empty() && threads.empty() && frames.empty() && stacks.empty();
    }
};

using ThreadPositions = std::map<std::pair<std::int32_t, std::uint64_t>, std::size_t>;   // by device and tid
/// Adds the new ones of `added` to `threads`, and to the others their new names.
void add_threads(std::vector<ThreadRow>& threads, ThreadPositions&, std::span<const ThreadRow> added);

/// Gives equal definitions equal positions, and hands new ones on in the order in which they came. Any thread. `nothing`
/// when memory ran out or when what a row names is not there.
class DefinitionTable {
public:
    std::uint32_t add_name(std::string_view) noexcept;
    std::uint32_t add_thread(const ThreadRow&) noexcept;
    /// The calling thread; if `name` is empty and it has none, its name of the system.
    std::uint32_t add_this_thread(std::string_view name) noexcept;
    std::uint32_t add_frame(const FrameRow&) noexcept;
    std::uint32_t add_stack(const StackRow&) noexcept;

    /// What came since the last call. Throws std::bad_alloc.
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

    std::mutex mutex_;
    std::deque<std::string> texts_;   // stand still: `names_` looks into them
    std::unordered_map<std::string_view, std::uint32_t> names_;
    std::unordered_map<Key2, std::uint32_t, Hash> threads_;
    std::vector<bool> named_;   // of each thread
    std::unordered_map<Key3, std::uint32_t, Hash> frames_;
    std::unordered_map<Key2, std::uint32_t, Hash> stacks_;
    Definitions fresh_;
};

}   // namespace drawpoint
