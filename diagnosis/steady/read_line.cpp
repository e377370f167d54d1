#include <drawpoint/diagnosis/steady/detail/read_line.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <vector>

#include <drawpoint/instrumentation/statistics.hpp>

namespace drawpoint {
namespace {

using statistics::quantile;

constexpr std::size_t least_reads = 100, most_reads = 20'000, least_unhindered = 20;

struct Read {
    std::int64_t begin_ns = 0, end_ns = 0;
    double bytes = 0;
};

/// Reads of the samples that began in a time range, ordered by their end: those ahead, and those in the first stage.
struct Reads {
    std::vector<Read> ahead, staged;
    bool staged_waits = true;   // a first stage that mostly computes is not a read

    [[nodiscard]] bool are_staged() const noexcept { return ahead.size() < least_reads && staged_waits; }
    [[nodiscard]] const std::vector<Read>& any() const noexcept { return are_staged() ? staged : ahead; }
};

Reads reads_of(const Ledger& ledger, std::int64_t from_ns, std::int64_t to_ns) {
    Reads found;
    std::int64_t staged_ns = 0, staged_cpu_ns = 0;
    for (const SampleRow& sample : ledger.samples) {
        if (sample.samples != 1 || sample.bytes == 0 || sample.begin_ns < from_ns || sample.begin_ns >= to_ns)
            continue;
        const auto bytes = static_cast<double>(sample.bytes);
        if (sample.read_begin_ns != no_stamp && sample.read_end_ns > sample.read_begin_ns)
            found.ahead.push_back({sample.read_begin_ns, sample.read_end_ns, bytes});
        if (const auto stages = ledger.stages_of(sample); !stages.empty() && stages[0].ns > 0) {
            found.staged.push_back({stages[0].begin_ns, stages[0].begin_ns + stages[0].ns, bytes});
            if (stages[0].cpu_ns != no_stamp) {
                staged_ns += stages[0].ns;
                staged_cpu_ns += stages[0].cpu_ns;
            }
        }
    }
    found.staged_waits = 2 * staged_cpu_ns < staged_ns;
    for (std::vector<Read>* const reads : {&found.ahead, &found.staged}) {
        std::ranges::sort(*reads, {}, &Read::end_ns);
        if (reads->size() > most_reads)
            reads->erase(reads->begin(), reads->end() - most_reads);
    }
    return found;
}

/// (upper quartile - lower quartile) / median
double spread(const std::vector<double>& values) {
    const double median = quantile(values, 0.5);
    return median > 0 ? (quantile(values, 0.75) - quantile(values, 0.25)) / median : 0;
}

/// Where most values are close together: the middle of the range of a tenth that has most of them, and how many it
/// has.
struct Cluster {
    double middle = 0;
    std::size_t size = 0;
};

Cluster densest(std::vector<double> values) {
    constexpr double width = 1.1;
    std::ranges::sort(values);
    Cluster found;
    std::size_t first = 0;
    for (std::size_t last = 0; last < values.size(); ++last) {
        while (first < last && values[last] > width * values[first])   // of a damaged file, they may be below 0
            ++first;
        if (const std::size_t size = last - first + 1; size > found.size)
            found = {.middle = values[first + size / 2], .size = size};
    }
    return found;
}

/// A linear regression of y on x.
class Line {
public:
    void add(double x, double y) noexcept { ++n_, x_ += x, y_ += y, xx_ += x * x, xy_ += x * y, yy_ += y * y; }
    /// x accounts for more than half of y, with a slope of at least four standard errors.
    [[nodiscard]] bool explains_most() const noexcept {
        const double x_mean = x_ / n_, y_mean = y_ / n_, slope = sxy() / sxx();
        const double syy = yy_ - n_ * y_mean * y_mean;
        const double error = std::sqrt(std::max(0.0, syy - slope * sxy()) / (n_ - 2) / sxx());
        return slope > 4 * error && slope * x_mean > 0.5 * y_mean;
    }
    [[nodiscard]] double x_variance() const noexcept { return sxx() / n_; }

private:
    [[nodiscard]] double sxx() const noexcept { return xx_ - x_ * x_ / n_; }
    [[nodiscard]] double sxy() const noexcept { return xy_ - x_ * y_ / n_; }
    double n_ = 0, x_ = 0, y_ = 0, xx_ = 0, xy_ = 0, yy_ = 0;
};

/// Whether reads take longer the more of them there are at a time.
bool slower_together(const std::vector<Read>& by_end) {
    std::vector<Read> reads = by_end;
    std::ranges::sort(reads, {}, &Read::begin_ns);
    std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> open;
    Line line;
    for (const Read& read : reads) {
        while (!open.empty() && open.top() <= read.begin_ns)
            open.pop();
        open.push(read.end_ns);
        line.add(static_cast<double>(open.size()), static_cast<double>(read.end_ns - read.begin_ns));
    }
    return line.x_variance() >= 0.05 && line.explains_most();   // with less variance the number of reads hardly varied
}

/// What a read takes besides the transfer of its bytes: the median of the reads that began while no other was under
/// way; if they are too few, the minimum of all, which is an upper bound. If there is always a queue, that bound
/// contains it, so it also uses the reads `before`: the first ones found no queue.
std::int64_t latency_of(const std::vector<Read>& by_end, const std::vector<Read>& before, double ns_per_byte) {
    std::vector<double> of_idle;
    double bound = std::numeric_limits<double>::infinity();
    for (const Read& read : before)
        bound = std::min(bound, static_cast<double>(read.end_ns - read.begin_ns) - read.bytes * ns_per_byte);
    std::int64_t last_end_ns = by_end.front().begin_ns;
    for (const Read& read : by_end) {
        const double passes_ns = read.bytes * ns_per_byte;
        const double beyond_ns = static_cast<double>(read.end_ns - read.begin_ns) - passes_ns;
        bound = std::min(bound, beyond_ns);
        if (read.begin_ns >= last_end_ns)
            of_idle.push_back(beyond_ns);
        last_end_ns = read.end_ns;
    }
    return std::llround(std::max(of_idle.size() >= least_unhindered ? quantile(of_idle, 0.5) : bound, 0.0));
}

}   // namespace

std::optional<ReadLine> read_line(const Ledger& ledger, std::int64_t from_ns, std::int64_t to_ns) {
    const Reads found = reads_of(ledger, from_ns, to_ns);
    const std::vector<Read>& reads = found.any();
    if (reads.size() < least_reads)
        return std::nullopt;
    std::vector<double> ns_per_byte, ns, bytes;   // of those that began before the one before had ended
    std::int64_t last_end_ns = reads.front().begin_ns;
    double busy_ns = 0, total_bytes = 0, first_begin_ns = static_cast<double>(reads.front().begin_ns);
    for (const Read& read : reads) {
        const auto alone_ns = static_cast<double>(read.end_ns - std::max(last_end_ns, read.begin_ns));
        if (read.begin_ns < last_end_ns) {
            ns_per_byte.push_back(alone_ns / read.bytes);
            ns.push_back(alone_ns);
            bytes.push_back(read.bytes);
        }
        busy_ns += alone_ns;
        total_bytes += read.bytes;
        first_begin_ns = std::min(first_begin_ns, static_cast<double>(read.begin_ns));
        last_end_ns = read.end_ns;
    }
    if (2 * ns_per_byte.size() < reads.size())
        return std::nullopt;
    // On a line that is busy, a read ends as long after the one before as its bytes take: many have this time for a
    // byte, and far fewer the same time. If all samples have one size, independent reads of one latency that start in
    // step look the same: then only the slope tells.
    const Cluster of_a_byte = densest(ns_per_byte);
    const bool in_turns = spread(bytes) > 0.05 && 8 * of_a_byte.size > ns_per_byte.size() &&
                          2 * of_a_byte.size > 3 * densest(std::move(ns)).size;
    if (!in_turns && !slower_together(reads))
        return std::nullopt;
    const double wall_ns = static_cast<double>(reads.back().end_ns) - first_begin_ns;
    ReadLine line{.busy_share = std::min(1.0, busy_ns / wall_ns),
                  .ns_per_byte = in_turns ? of_a_byte.middle : busy_ns / total_bytes};
    if (!(line.ns_per_byte > 0))
        return std::nullopt;
    const Reads before = reads_of(ledger, ledger.start_ns, from_ns);
    line.latency_ns = latency_of(reads, found.are_staged() ? before.staged : before.ahead, line.ns_per_byte);
    return line;
}

bool reads_grow_with_bytes(const Ledger& ledger, std::int64_t from_ns, std::int64_t to_ns) {
    constexpr double least_variation = 0.02;   // standard deviation of the bytes, relative to their mean
    const Reads found = reads_of(ledger, from_ns, to_ns);
    const std::vector<Read>& reads = found.any();
    if (reads.size() < least_reads)
        return false;
    Line line;
    double bytes = 0;
    std::size_t together = 0;
    std::int64_t last_end_ns = reads.front().begin_ns;
    for (const Read& read : reads) {
        line.add(read.bytes, static_cast<double>(read.end_ns - read.begin_ns));
        bytes += read.bytes;
        together += read.begin_ns < last_end_ns;
        last_end_ns = read.end_ns;
    }
    const double mean = bytes / static_cast<double>(reads.size());
    return 2 * together < reads.size() && line.x_variance() > std::pow(least_variation * mean, 2) &&
           line.explains_most();
}

void set_read_line(RecordedRun& run, const std::optional<ReadLine>& line) {
    run.line_ns_per_byte = line ? line->ns_per_byte : 0;
    run.line_latency_ns = line ? line->latency_ns : 0;
}

}   // namespace drawpoint
