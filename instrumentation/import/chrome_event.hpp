#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// What the import wants of one event. Texts are valid until the next one is parsed.
struct ChromeEvent {
    char phase = 0;
    std::string_view name, category;
    std::string_view pid, tid;                   ///< as written: 42, -1, "Spans"
    std::optional<std::int64_t> ts_ns, dur_ns;   ///< since `baseTimeNanoseconds`
    std::string_view label;                      ///< a metadata event's `args.name`
    std::int64_t sequence = -1;
    std::uint64_t forward_thread = 0, correlation = 0, flops = 0;
    bool has_index = false;         ///< "Ev Idx": in our own traces, of operators only
    bool ended = true;              ///< unless it says so
    std::string_view stack_frame;   ///< "sf", which names one of the trace's `stackFrames`; empty: none
    std::optional<std::int64_t> device, stream;
    std::string_view input_dims;   ///< JSON
    std::int64_t device_type = 0, device_id = -1, bytes = 0, total_allocated = 0;
    std::uint64_t address = 0;
};

/// One of a trace's `stackFrames`.
struct ChromeFrame {
    std::string_view id, name, parent;   ///< `parent`: empty for the outermost
};

/// Parses the text of single events.
class ChromeEventParser {
public:
    ChromeEventParser();
    ~ChromeEventParser();

    /// `text` is followed by `JsonPieces::padding` bytes that may be read. Nothing, or what is wrong with it.
    [[nodiscard]] std::optional<std::string> parse(std::string_view text, ChromeEvent&);
    /// The value of a member of an object of texts and numbers, as plain text; nothing when it is not there.
    [[nodiscard]] std::optional<std::string> member(std::string_view object, std::string_view key);
    /// Calls `take` with each of the value of `stackFrames`; those that are no objects with a name are passed over.
    void frames(std::string_view object, const std::function<void(const ChromeFrame&)>& take);
    /// Whether it is a whole JSON value.
    [[nodiscard]] bool is_valid(std::string_view text);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Microseconds with any number of decimals, or with an exponent, in whole nanoseconds, exactly; nothing when it is no
/// number or would not fit.
[[nodiscard]] std::optional<std::int64_t> nanoseconds_of(std::string_view microseconds) noexcept;

/// JSON lists as Python prints them: "[[16, 3], []]".
[[nodiscard]] std::string python_list(std::string_view json);

/// What a category is; nothing: no operator ("Trace").
[[nodiscard]] std::optional<OperatorKind> kind_of(std::string_view category) noexcept;

}   // namespace drawpoint
