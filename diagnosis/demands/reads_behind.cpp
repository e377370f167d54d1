#include "diagnosis/demands/reads_behind.hpp"

#include <algorithm>
#include <cstddef>

#include <drawpoint/diagnosis/rows/detail/loader_rows.hpp>

namespace drawpoint {

std::vector<std::int64_t> reads_behind(const Ledger& ledger, std::uint16_t pipeline) {
    struct Read {
        std::int64_t begin_ns, end_ns;
        std::size_t sample;
    };
    std::vector<Read> reads;
    for (std::size_t at = 0; at < ledger.samples.size(); ++at) {
        const SampleRow& row = ledger.samples[at];
        if (row.pipeline != pipeline || row.bytes == 0)
            continue;
        if (row.read_begin_ns != no_stamp && row.read_end_ns != no_stamp)
            reads.push_back({row.read_begin_ns, row.read_end_ns, at});
        else if (const auto stages = ledger.stages_of(row); !stages.empty())
            reads.push_back({stages[0].begin_ns, end_ns(stages[0].begin_ns, stages[0].ns), at});
    }
    std::ranges::sort(reads, {}, &Read::end_ns);
    std::vector<std::int64_t> behind(ledger.samples.size());
    for (std::size_t i = 1; i < reads.size(); ++i)
        if (reads[i].begin_ns < reads[i - 1].end_ns)
            behind[reads[i].sample] = length_ns(reads[i].begin_ns, reads[i - 1].end_ns);
    return behind;
}

}   // namespace drawpoint
