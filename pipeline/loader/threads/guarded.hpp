#pragma once

#include <mutex>
#include <utility>

namespace drawpoint {

/// A value and the mutex that guards it: the value is reached through a lock alone, so what needs the mutex says so by
/// taking a reference to the value.
template <class T>
class Guarded {
public:
    class Lock {
    public:
        explicit Lock(Guarded& of) : lock_{of.mutex_}, value_{&of.value_} {}
        [[nodiscard]] T& operator*() const noexcept { return *value_; }
        [[nodiscard]] T* operator->() const noexcept { return value_; }
        /// To wait on a condition, or to let go for a while.
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
    /// For what another class keeps under this mutex.
    [[nodiscard]] std::mutex& mutex() noexcept { return mutex_; }

private:
    std::mutex mutex_;
    T value_;
};

}   // namespace drawpoint
