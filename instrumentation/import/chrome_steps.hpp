#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Whether `add_steps` uses ranges with this name.
[[nodiscard]] bool says_of_steps(std::string_view name) noexcept;

/// Makes steps and one training pass from the ranges `ProfilerStep#N` among `operators`, which must be sorted and refer
/// to the ledger's names and threads; see `import_chrome_trace`. `batch_size`: samples of every step that has a draw.
/// Returns the index of the steps' thread, or `nothing` if there is no step.
std::uint32_t add_steps(Ledger&, std::span<const OperatorRow> operators, std::uint32_t batch_size,
                        std::vector<std::string>& warnings);

}   // namespace drawpoint
