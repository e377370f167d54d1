#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

#include "chrome_event.hpp"

namespace drawpoint {

/// Gives operators their stacks: those of the trace's `stackFrames` or, if no event refers to one, the Python functions
/// around them.
class ChromeStacks {
public:
    /// `name` returns the index of a text in `Ledger::names`.
    ChromeStacks(Ledger& ledger, std::function<std::uint32_t(std::string_view)> name)
        : ledger_{ledger}, name_{std::move(name)} {}

    /// A temporary number for the stack `sf` of an event, kept in its row until `finish()`.
    [[nodiscard]] std::uint32_t number_of(std::string_view sf);
    /// One of the trace's `stackFrames`.
    void add_frame(const ChromeFrame&);
    void saw_python_function() noexcept { has_python_ = true; }
    /// Sets the stacks of the ledger's operators, which must be sorted by thread and begin.
    void finish();

private:
    struct TracedFrame {
        std::string text;
        std::uint32_t parent = nothing;        // its temporary number
        std::uint32_t stack = nothing;         // index in the ledger, once known
        bool known = false, entered = false;   // known: it is in the trace; entered: its parents are being looked up
    };

    [[nodiscard]] std::uint32_t frame(std::string_view text);
    [[nodiscard]] std::uint32_t stack(std::uint32_t parent, std::uint32_t frame);
    [[nodiscard]] std::uint32_t stack_of(std::uint32_t number);
    void add_python_functions();

    Ledger& ledger_;
    std::function<std::uint32_t(std::string_view)> name_;
    std::unordered_map<std::string, std::uint32_t> numbers_;   // by the trace's keys
    std::vector<TracedFrame> traced_;
    std::unordered_map<std::string, std::uint32_t> frames_;                     // by text
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> stacks_;   // by parent and frame
    bool has_python_ = false, has_numbers_ = false;
};

}   // namespace drawpoint
