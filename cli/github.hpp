#pragma once

#include <string>

namespace drawpoint::cli {

/// Prints a verdict as an annotation of a GitHub workflow, and adds it, with a table in Markdown, to the summary of its
/// step ($GITHUB_STEP_SUMMARY, if that is set). Returns false if that file cannot be written, and says so.
bool tell_github(bool passes, const std::string& verdict, const std::string& table);

}   // namespace drawpoint::cli
