#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/diagnosis/verdict/words.hpp>

#include "case.hpp"

namespace drawpoint::bench {

/// Keys of everything that can be changed about a case, spelt as `Intervention::key()`. Left out are "cores" and
/// "delivery", which cannot be changed for real, what changes nothing about this case, and what its memory budget does
/// not allow.
[[nodiscard]] std::vector<std::string> change_keys(const Case&);

/// The case with that changed. Throws std::invalid_argument naming a key that is not among `change_keys`.
[[nodiscard]] Case changed(const Case&, std::string_view key);

/// The one spelling of keys that mean the same here: a read is a stage where the workers do it.
[[nodiscard]] std::string_view canonical(std::string_view key) noexcept;

/// Verdicts that are right where this change gains most: more than one where the change does not tell them apart.
[[nodiscard]] std::set<Verdict> verdicts_of(const Case&, std::string_view key);

/// Whether a user could choose it, rather than wish for it.
[[nodiscard]] bool can_be_set(std::string_view key) noexcept;

/// Whether the loader takes it: its smallest plan is within its memory budget.
[[nodiscard]] bool fits_memory(const Case&);

/// Every pair of its grid's numbers that fits.
[[nodiscard]] std::vector<Case> grid_of(const Case&);

/// The key of a changed setting; nullopt: it is none of them.
[[nodiscard]] std::optional<std::string> key_of(const LoaderSetting& base, const LoaderSetting& other);

/// "workers 4, depth 2, in order": for tables.
[[nodiscard]] std::string to_string(const LoaderSetting&);

}   // namespace drawpoint::bench
