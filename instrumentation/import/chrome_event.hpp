#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// The members of one event that the import uses. Texts are valid until the next event is parsed.
struct ChromeEvent {
    char phase = 0;
    std::string_view name, category;
    std::string_view pid, tid;                   ///< as written in the file: 42, -1, "Spans"
    std::optional<std::int64_t> ts_ns, dur_ns;   ///< since `baseTimeNanoseconds`
    std::string_view label;                      ///< a metadata event's `args.name`
    std::int64_t sequence = -1;
    std::uint64_t forward_thread = 0, correlation = 0, flops = 0;
    bool has_index = false;         ///< "Ev Idx": in traces written by drawpoint only operators have it
    bool ended = true;              ///< false if the event is marked as unfinished
    std::string_view stack_frame;   ///< "sf", a key of the trace's `stackFrames`; empty: none
    std::optional<std::int64_t> device, stream;
    std::string_view input_dims;   ///< JSON
    std::int64_t device_type = 0, device_id = -1, bytes = 0, total_allocated = 0;
    std::uint64_t address = 0;
};

/// One of the trace's `stackFrames`.
struct ChromeFrame {
    std::string_view id, name, parent;   ///< `parent`: empty for the outermost
};

/// Parses the text of single events.
class ChromeEventParser {
public:
    ChromeEventParser();
    ~ChromeEventParser();

    /// `text` must be followed by `JsonPieces::padding` readable bytes. Returns what is wrong with it, if anything.
    [[nodiscard]] std::optional<std::string> parse(std::string_view text, ChromeEvent&);
    /// The value of a member of an object of texts and numbers, as plain text; nullopt if there is none.
    [[nodiscard]] std::optional<std::string> member(std::string_view object, std::string_view key);
    /// Calls `take` with each element of the `stackFrames` object; those that are not objects with a name are skipped.
    void frames(std::string_view object, const std::function<void(const ChromeFrame&)>& take);
    /// Whether the text is a complete JSON value.
    [[nodiscard]] bool is_valid(std::string_view text);

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

/// Converts microseconds with any number of decimals, or with an exponent, to integer nanoseconds, without rounding
/// errors; nullopt if it is not a number or does not fit.
[[nodiscard]] std::optional<std::int64_t> nanoseconds_of(std::string_view microseconds) noexcept;

/// A JSON list in Python's notation: "[[16, 3], []]".
[[nodiscard]] std::string python_list(std::string_view json);

/// The kind of operator that a category stands for; nullopt if none ("Trace").
[[nodiscard]] std::optional<OperatorKind> kind_of(std::string_view category) noexcept;

}   // namespace drawpoint
