#pragma once

#include <concepts>
#include <string_view>

#include <drawpoint/loop/callback.hpp>

namespace drawpoint {

namespace detail {

/// The name of `T` without its namespaces, in static storage: "Announce".
template <class T>
constexpr std::string_view class_name() noexcept {
    // "… [with T = ns::Announce; …]" of GCC, "… [T = ns::Announce]" of Clang
    std::string_view name = __PRETTY_FUNCTION__;
    name.remove_prefix(name.find("T = ") + 4);
    name = name.substr(0, name.find_first_of(";]"));
    const std::size_t scope = name.substr(0, name.find('<')).rfind("::");
    return scope == name.npos ? name : name.substr(scope + 2);
}

}   // namespace detail

/// A callback written as a class with a public member function for each event it cares about, named like the event and
/// taking the `LoopState&` or nothing. Other events cost it nothing. `name()` is the class's name unless it is
/// overridden.
///
///     class Announce final : public EventCallback<Announce> {
///     public:
///         void before_epoch(const LoopState& state) { std::cout << "epoch " << state.epoch << '\n'; }
///     };
template <class Derived>
class EventCallback : public Callback {
public:
    [[nodiscard]] std::string_view name() const noexcept override { return detail::class_name<Derived>(); }

#define DRAWPOINT_EACH_EVENT(DO)                                                                                       \
    DO(after_create)                                                                                                   \
    DO(before_fit)                                                                                                     \
    DO(before_epoch)                                                                                                   \
    DO(before_train)                                                                                                   \
    DO(before_draw)                                                                                                    \
    DO(before_batch)                                                                                                   \
    DO(after_pred)                                                                                                     \
    DO(after_loss)                                                                                                     \
    DO(before_backward)                                                                                                \
    DO(after_cancel_backward)                                                                                          \
    DO(after_backward)                                                                                                 \
    DO(before_step)                                                                                                    \
    DO(after_cancel_step)                                                                                              \
    DO(after_step)                                                                                                     \
    DO(after_cancel_batch)                                                                                             \
    DO(after_batch)                                                                                                    \
    DO(after_cancel_train)                                                                                             \
    DO(after_train)                                                                                                    \
    DO(before_validate)                                                                                                \
    DO(after_cancel_validate)                                                                                          \
    DO(after_validate)                                                                                                 \
    DO(after_cancel_epoch)                                                                                             \
    DO(after_epoch)                                                                                                    \
    DO(after_cancel_fit)                                                                                               \
    DO(after_fit)

    [[nodiscard]] EventSet events() const noexcept override {
        constexpr EventSet set = listens_to();
        static_assert(set != EventSet{}, "no public member function of this callback is named as an event");
        return set;
    }

    void on(Event event, LoopState& state) final {
        Derived& self = static_cast<Derived&>(*this);
        switch (event) {
#define DRAWPOINT_CALL_EVENT(EVENT)                                                                                    \
    case Event::EVENT:                                                                                                 \
        if constexpr (requires { self.EVENT(state); })                                                                 \
            self.EVENT(state);                                                                                         \
        else if constexpr (requires { &Derived::EVENT; })                                                              \
            self.EVENT();                                                                                              \
        break;
            DRAWPOINT_EACH_EVENT(DRAWPOINT_CALL_EVENT)
#undef DRAWPOINT_CALL_EVENT
        }
    }

private:
    static constexpr EventSet listens_to() noexcept {
        EventSet set;
#define DRAWPOINT_ADD_EVENT(EVENT)                                                                                     \
    if constexpr (requires(Derived& self, LoopState& state) { self.EVENT(state); } || requires { &Derived::EVENT; })   \
        set |= EventSet{Event::EVENT};
        DRAWPOINT_EACH_EVENT(DRAWPOINT_ADD_EVENT)
#undef DRAWPOINT_ADD_EVENT
        return set;
    }
#undef DRAWPOINT_EACH_EVENT
};

}   // namespace drawpoint
