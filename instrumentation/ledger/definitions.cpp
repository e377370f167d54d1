#include "instrumentation/ledger/definitions.hpp"

#include <pthread.h>
#include <unistd.h>

#include <exception>
#include <utility>

namespace drawpoint {
namespace {

/// The position of `key`. A new one is added by `add`, at the end. `nothing` if memory runs out.
template <class Map, class Key, class Add>
std::uint32_t position_of(Map& positions, const Key& key, Add&& add) noexcept {
    try {
        if (const auto found = positions.find(key); found != positions.end())
            return found->second;
        if (positions.size() >= nothing)
            return nothing;
        return add(static_cast<std::uint32_t>(positions.size()));
    } catch (const std::exception&) {
        return nothing;
    }
}

/// Reserves memory, so that the next `push_back` of a movable value cannot throw.
template <class T>
void make_room(std::vector<T>& rows) {
    if (rows.size() == rows.capacity())
        rows.reserve(2 * rows.size() + 16);
}

}   // namespace

void add_threads(std::vector<ThreadRow>& threads, ThreadPositions& positions, std::span<const ThreadRow> added) {
    for (const ThreadRow& row : added) {
        const auto [at, is_new] = positions.try_emplace(std::pair{row.device, row.tid}, threads.size());
        if (is_new)
            threads.push_back(row);
        else if (!row.name.empty())
            threads[at->second].name = row.name;
    }
}

bool DefinitionTable::takes(std::size_t bytes) noexcept {
    if (bytes > most_bytes_ - bytes_)
        return false;
    bytes_ += bytes;
    return true;
}

// In each of these, what can throw comes first, so that no position is given out without its definition.

std::uint32_t DefinitionTable::add_name(std::string_view name) noexcept {
    const std::lock_guard lock{mutex_};
    return position_of(names_, name, [&](std::uint32_t position) {
        if (!takes(sizeof(std::string) + name.size()))
            return nothing;
        std::string text{name};
        make_room(fresh_.names);
        texts_.emplace_back(name);
        try {
            names_.emplace(texts_.back(), position);
        } catch (...) {
            texts_.pop_back();
            throw;
        }
        fresh_.names.push_back(std::move(text));
        return position;
    });
}

std::uint32_t DefinitionTable::add_thread(const ThreadRow& row) noexcept {
    const std::lock_guard lock{mutex_};
    const Key2 key{static_cast<std::uint32_t>(row.device), row.tid};
    try {
        fresh_.threads.push_back(row);
    } catch (const std::exception&) {
        return nothing;
    }
    const std::size_t before = threads_.size();
    const std::uint32_t position = position_of(threads_, key, [&](std::uint32_t next) {
        named_.push_back(false);
        try {
            threads_.emplace(key, next);
        } catch (...) {
            named_.pop_back();
            throw;
        }
        return next;
    });
    if (position == nothing || (threads_.size() == before && row.name.empty()))
        fresh_.threads.pop_back();
    else
        named_[position] = named_[position] || !row.name.empty();
    return position;
}

std::uint32_t DefinitionTable::add_this_thread(std::string_view name) noexcept {
    try {
        ThreadRow row{static_cast<std::uint64_t>(::gettid()), std::string{name}};
        const std::uint32_t position = add_thread(row);
        if (!name.empty() || position == nothing)
            return position;
        {
            const std::lock_guard lock{mutex_};
            if (named_[position])
                return position;
        }
        std::array<char, 16> own{};
        if (::pthread_getname_np(::pthread_self(), own.data(), own.size()) == 0)
            row.name = own.data();
        return add_thread(row);
    } catch (const std::exception&) {
        return nothing;
    }
}

std::uint32_t DefinitionTable::add_frame(const FrameRow& row) noexcept {
    const std::lock_guard lock{mutex_};
    if (row.function >= texts_.size() || (row.file != nothing && row.file >= texts_.size()))
        return nothing;
    return position_of(frames_, Key3{row.function, row.file, row.line}, [&](std::uint32_t position) {
        if (!takes(sizeof row))
            return nothing;
        make_room(fresh_.frames);
        frames_.emplace(Key3{row.function, row.file, row.line}, position);
        fresh_.frames.push_back(row);
        return position;
    });
}

std::uint32_t DefinitionTable::add_stack(const StackRow& row) noexcept {
    const std::lock_guard lock{mutex_};
    if (row.frame >= frames_.size() || (row.parent != nothing && row.parent >= stacks_.size()))
        return nothing;
    return position_of(stacks_, Key2{row.parent, row.frame}, [&](std::uint32_t position) {
        if (!takes(sizeof row))
            return nothing;
        make_room(fresh_.stacks);
        stacks_.emplace(Key2{row.parent, row.frame}, position);
        fresh_.stacks.push_back(row);
        return position;
    });
}

Definitions DefinitionTable::take() {
    const std::lock_guard lock{mutex_};
    return std::exchange(fresh_, {});
}

}   // namespace drawpoint
