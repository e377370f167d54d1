#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace drawpoint::model {

// A checker of lock-free code: runs a scenario of up to three threads under every order of their atomic operations and,
// for every load, with every value that C++'s rules for the given memory orders allow. It finds lost wake-ups (threads
// that all wait), data races, and whatever a scenario checks.
//
// The rules are those of the standard, with these simplifications: stores to a variable take effect in the order in
// which they are made; a compare-exchange does not fail for no reason; a load cannot read what is stored later, and a
// thread does not read a value that is not the last one twice in a row.

inline constexpr std::size_t most_threads = 4;   ///< the scenario itself, which is thread 0, and three more

/// How far each thread's past is known.
class Clock {
public:
    [[nodiscard]] std::uint32_t of(std::size_t thread) const noexcept { return times_[thread]; }
    void tick(std::size_t thread) noexcept { ++times_[thread]; }
    void join(const Clock& other) noexcept;

private:
    std::array<std::uint32_t, most_threads> times_{};
};

/// Something that a thread did.
struct Moment {
    std::size_t thread = 0;
    std::uint32_t time = 0;
    [[nodiscard]] bool is_known_to(const Clock& clock) const noexcept { return time <= clock.of(thread); }
};

/// One value that an atomic variable had.
struct Store {
    std::uint64_t value = 0;
    Moment made;
    Clock released;   ///< what an acquiring load of it comes to know
};

/// The state of an atomic variable.
struct Location {
    std::vector<Store> stores;
    std::array<std::size_t, most_threads> seen{};    ///< by thread: no older store can be read
    std::size_t last_sequential = 0;                 ///< the last sequentially consistent store
    std::array<std::size_t, most_threads> stale{};   ///< by thread: how often in a row it read an older one
};

/// A place in the code with a memory order.
struct Site {
    std::string file;
    std::uint_least32_t line = 0, column = 0;
    auto operator<=>(const Site&) const = default;
};

class Explorer;
class Run;

/// What exploring a scenario found.
struct Found {
    std::uint64_t runs = 0;
    std::string violation;                      ///< empty: none
    std::map<Site, std::memory_order> orders;   ///< those stronger than relaxed that were used
    bool complete = false;                      ///< false: a violation, or more than `most_runs`
};

/// At this place, another memory order than the one in the code.
struct Weakened {
    Site site;
    std::memory_order order{};
};

/// Runs the scenario under every schedule, or until a violation is found.
[[nodiscard]] Found explore(const std::function<void(Run&)>& scenario, const Weakened* weakened = nullptr,
                            std::uint64_t most_runs = 50'000'000);

/// One execution of a scenario.
class Run {
public:
    /// Starts a thread; it runs once the scenario has returned. What it holds when it is abandoned is never destroyed,
    /// so it must hold nothing that needs to be.
    void thread(std::function<void()> body);
    /// To be called when all threads have ended.
    void at_end(std::function<void()> check) { check_ = std::move(check); }
    /// Ends the exploration with this message unless `holds`.
    void check(bool holds, const char* what);

    [[nodiscard]] static Run& current() noexcept { return *current_; }

    // For Atomic, Plain and Atomics.
    enum class Kind : std::uint8_t { read, write };
    std::uint64_t load(Location&, std::memory_order, const std::source_location&);
    void store(Location&, std::uint64_t, std::memory_order, const std::source_location&);
    /// Stores `change(old value)` and returns the old value.
    std::uint64_t modify(Location&, const std::function<std::uint64_t(std::uint64_t)>& change, std::memory_order,
                         const std::source_location&);
    bool exchange_if(Location&, std::uint64_t& expected, std::uint64_t desired, std::memory_order success,
                     std::memory_order failure, const std::source_location&);
    /// Sleeps until `wake`, unless the value is another one: the last one, or any that a sequentially consistent load
    /// may read.
    void sleep(Location&, std::uint64_t value, bool last);
    void wake(Location&, std::size_t most);
    [[nodiscard]] const Clock& clock() const noexcept;
    [[nodiscard]] Moment now();

private:
    friend class Explorer;
    explicit Run(Explorer& explorer) : impl_{&explorer} {}
    Explorer* impl_;
    std::function<void()> check_;
    inline static Run* current_ = nullptr;
};

/// In place of std::atomic.
template <class T>
class Atomic {
public:
    static constexpr bool is_always_lock_free = true;

    Atomic(T value = {}) {   // NOLINT: implicit like std::atomic's
        location_.stores.push_back({to(value), Run::current().now(), Run::current().clock()});
    }
    Atomic(const Atomic&) = delete;
    Atomic& operator=(const Atomic&) = delete;

    using Order = std::memory_order;
    using Here = std::source_location;

    [[nodiscard]] T load(Order order = Order::seq_cst, const Here& at = Here::current()) const {
        return from(Run::current().load(location_, order, at));
    }
    void store(T value, Order order = Order::seq_cst, const Here& at = Here::current()) {
        Run::current().store(location_, to(value), order, at);
    }
    T exchange(T value, Order order = Order::seq_cst, const Here& at = Here::current()) {
        return modify([&](T) { return value; }, order, at);
    }
    T fetch_add(T more, Order order = Order::seq_cst, const Here& at = Here::current()) {
        return modify([&](T old) { return static_cast<T>(old + more); }, order, at);
    }
    T fetch_sub(T less, Order order = Order::seq_cst, const Here& at = Here::current()) {
        return modify([&](T old) { return static_cast<T>(old - less); }, order, at);
    }
    T fetch_or(T bits, Order order = Order::seq_cst, const Here& at = Here::current()) {
        return modify([&](T old) { return static_cast<T>(old | bits); }, order, at);
    }
    T fetch_and(T bits, Order order = Order::seq_cst, const Here& at = Here::current()) {
        return modify([&](T old) { return static_cast<T>(old & bits); }, order, at);
    }
    bool compare_exchange_strong(T& expected, T desired, Order success, Order failure,
                                 const Here& at = Here::current()) {
        std::uint64_t bits = to(expected);
        const bool done = Run::current().exchange_if(location_, bits, to(desired), success, failure, at);
        expected = from(bits);
        return done;
    }
    bool compare_exchange_strong(T& expected, T desired, Order order = Order::seq_cst,
                                 const Here& at = Here::current()) {
        return compare_exchange_strong(expected, desired, order, order == Order::acq_rel ? Order::acquire : order, at);
    }
    bool compare_exchange_weak(T& expected, T desired, Order success, Order failure, const Here& at = Here::current()) {
        return compare_exchange_strong(expected, desired, success, failure, at);
    }
    bool compare_exchange_weak(T& expected, T desired, Order order = Order::seq_cst, const Here& at = Here::current()) {
        return compare_exchange_strong(expected, desired, order, at);
    }
    void wait(T old, Order order = Order::seq_cst, const Here& at = Here::current()) const {
        while (load(order, at) == old)
            Run::current().sleep(location_, to(old), true);
    }
    void notify_one() { Run::current().wake(location_, 1); }
    void notify_all() { Run::current().wake(location_, most_threads); }

    [[nodiscard]] Location& location() noexcept { return location_; }

private:
    static std::uint64_t to(T value) noexcept {
        if constexpr (sizeof(T) == 8)
            return std::bit_cast<std::uint64_t>(value);
        else
            return static_cast<std::uint64_t>(value);
    }
    static T from(std::uint64_t bits) noexcept {
        if constexpr (sizeof(T) == 8)
            return std::bit_cast<T>(bits);
        else
            return static_cast<T>(bits);
    }
    template <class Change>
    T modify(Change change, Order order, const Here& at) {
        return from(
            Run::current().modify(location_, [&](std::uint64_t old) { return to(change(from(old))); }, order, at));
    }

    mutable Location location_;
};

/// Memory that is not atomic: finds data races.
template <class T>
class Plain {
public:
    Plain(T value = {}) : value_{value}, written_{Run::current().now()} {}   // NOLINT: implicit like a T
    Plain(const Plain&) = delete;
    Plain& operator=(const Plain&) = delete;

    operator T() const {   // NOLINT
        Run::current().check(written_.is_known_to(Run::current().clock()), "a data race: read, and written");
        const Moment now = Run::current().now();
        read_[now.thread] = now;
        return value_;
    }
    Plain& operator=(T value) {
        const Clock& clock = Run::current().clock();
        Run::current().check(written_.is_known_to(clock), "a data race: written twice");
        for (const Moment& read : read_)
            Run::current().check(read.is_known_to(clock), "a data race: written, and read");
        written_ = Run::current().now();
        value_ = value;
        return *this;
    }

private:
    T value_;
    Moment written_;
    mutable std::array<Moment, most_threads> read_{};
};

/// In place of RealAtomics.
struct Atomics {
    template <class T>
    using atomic = Atomic<T>;
    template <class T>
    using plain = Plain<T>;
    static constexpr int spins = 0;
    static void pause() noexcept {}
    static void yield() noexcept {}
    static void sleep(Atomic<std::uint32_t>& word, std::uint32_t value) {
        Run::current().sleep(word.location(), value, false);
    }
    static void wake(Atomic<std::uint32_t>& word, std::uint32_t most) { Run::current().wake(word.location(), most); }
};

}   // namespace drawpoint::model
