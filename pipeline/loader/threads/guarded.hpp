#pragma once

#include <mutex>
#include <utility>

namespace drawpoint {

/// A value and the mutex that guards it. The value can only be reached through a lock, so a function shows that it
/// needs the mutex by taking a reference to the value.
template <class T>
class Guarded {
public:
    class Lock {
    public:
        explicit Lock(Guarded& of) : lock_{of.mutex_}, value_{&of.value_} {}
        [[nodiscard]] T& operator*() const noexcept { return *value_; }
        [[nodiscard]] T* operator->() const noexcept { return value_; }
        /// The lock itself, to wait on a condition variable.
        [[nodiscard]] std::unique_lock<std::mutex>& mutex_lock() noexcept { return lock_; }
        void unlock() { lock_.unlock(); }
        void lock_again() { lock_.lock(); }

    private:
        std::unique_lock<std::mutex> lock_;
        T* value_;
    };

    template <class... Arguments>
    explicit Guarded(Arguments&&... arguments) : value_{std::forward<Arguments>(arguments)...} {}
    [[nodiscard]] Lock lock() { return Lock{*this}; }
    /// For state outside of the value that this mutex guards too.
    [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }

private:
    std::mutex mutex_;
    T value_;
};

}   // namespace drawpoint
