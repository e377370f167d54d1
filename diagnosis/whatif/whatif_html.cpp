#include <fmt/format.h>

#include <drawpoint/diagnosis/whatif/whatif_report.hpp>
#include <drawpoint/instrumentation/text/printable.hpp>

#include "diagnosis/page/page.hpp"
#include "diagnosis/whatif/whatif_chart.hpp"

namespace drawpoint {

std::string to_html(const Whatif& found, std::string_view title) {
    std::string body;
    for (const Doubt& doubt : found.trust.reasons)
        body +=
            fmt::format("<p class=\"bad\"><strong>Not to be trusted</strong>: {}.</p>\n", printable_markup(doubt.text));
    return page_of(title, body + whatif_body(found));
}

std::string to_svg(const Whatif& found) { return whatif_map(found, found.rows[found.recommended]).alone(); }

}   // namespace drawpoint
