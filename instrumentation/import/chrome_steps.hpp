#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// Whether `add_steps` makes anything of a range of this name.
[[nodiscard]] bool says_of_steps(std::string_view name) noexcept;

/// Makes steps and one training pass of the ranges `ProfilerStep#N` among `operators`, which are sorted and name the
/// ledger's texts and threads; see `import_chrome_trace`. `batch_size`: samples of every step that drew. Returns the
/// position of the steps' thread, `nothing` where there is no step.
std::uint32_t add_steps(Ledger&, std::span<const OperatorRow> operators, std::uint32_t batch_size,
                        std::vector<std::string>& warnings);

}   // namespace drawpoint
