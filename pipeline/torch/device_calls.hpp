#pragma once

#include <exception>
#include <optional>
#include <string>

#include <c10/core/Device.h>
#include <c10/util/Exception.h>

#include <drawpoint/pipeline/errors.hpp>

namespace drawpoint {

/// Calls of a device. After one has failed, no further call is made. One thread uses it.
class DeviceCalls {
public:
    explicit DeviceCalls(c10::Device device) : device_{device} {}

    [[nodiscard]] c10::Device device() const noexcept { return device_; }
    [[nodiscard]] bool has_failed() const noexcept { return failure_.has_value(); }
    /// Makes a call of the device, and throws DeviceError if it fails, or one has failed before. Any failure but a lack
    /// of memory (c10::OutOfMemoryError) is the last.
    template <class Call>
    auto operator()(const char* what, Call&& make) -> decltype(make()) {
        if (failure_)
            throw DeviceError{*failure_};
        try {
            return make();
        } catch (const c10::OutOfMemoryError&) {
            throw;
        } catch (const std::exception& error) {
            fail(what, error);
        }
        throw DeviceError{*failure_};
    }
    /// The first line of its message.
    [[nodiscard]] static std::string message_of(const std::exception& error) {
        const auto* const of_torch = dynamic_cast<const c10::Error*>(&error);
        const std::string text = of_torch != nullptr ? of_torch->what_without_backtrace() : error.what();
        return text.substr(0, text.find('\n'));
    }

private:
    void fail(const char* what, const std::exception& error) noexcept {
        if (!failure_)   // else within a call
            failure_ = device_.str() + ": " + what + " failed: " + message_of(error);
    }

    c10::Device device_;
    std::optional<std::string> failure_;
};

}   // namespace drawpoint
