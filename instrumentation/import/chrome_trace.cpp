#include <drawpoint/instrumentation/import/chrome_trace.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <functional>
#include <istream>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <drawpoint/instrumentation/facts.hpp>

#include "chrome_event.hpp"
#include "chrome_stacks.hpp"
#include "chrome_steps.hpp"
#include "event_filter.hpp"
#include "inflating_reader.hpp"
#include "json_pieces.hpp"

namespace drawpoint {
namespace {

constexpr std::size_t most_member_bytes = 1u << 16;       // largest member kept when operators are left out
constexpr std::int64_t most_ns = std::int64_t{1} << 61;   // 73 years: base + begin + duration cannot overflow

bool is_sane(std::int64_t ns) noexcept { return ns <= most_ns && ns >= -most_ns; }

struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};

/// Builds the ledger event by event.
class Importer {
public:
    explicit Importer(const ImportOptions& options) : batch_size_{options.batch_size}, operators_{options.operators} {}

    void add(const ChromeEvent& event) {
        switch (event.phase) {
        case 'X': return add_operator(event);
        case 'i':
        case 'I':
            if (operators_ && event.name == "[memory]")
                add_allocation(event);
            return;
        case 'M':
            if (event.name == "process_name")
                process_names_[std::string{event.pid}] = event.label;
            else if (event.name == "thread_name")
                thread_names_[key_of(event)] = event.label;
            return;
        case 's':
        case 't':
        case 'f':
        case 'C': return;   // arrows and counters have nothing that the ledger does not have already
        default: ++other_phases_[event.phase];
        }
    }

    void add_member(std::string_view key, std::string_view json, ChromeEventParser& parser) {
        if (key == "baseTimeNanoseconds") {
            std::int64_t base = 0;
            if (std::from_chars(json.data(), json.data() + json.size(), base).ec != std::errc{} || !is_sane(base))
                warnings_.push_back("baseTimeNanoseconds is no time: taken as 0");
            else
                base_ns_ = base;
            return;
        }
        if (key == "drawpoint")
            is_own_ = true;
        if (!operators_ && (key == "stackFrames" || json.size() > most_member_bytes))
            return;
        if (key == "stackFrames")
            return parser.frames(json, [this](const ChromeFrame& frame) { stacks_.add_frame(frame); });
        if (key == "loader")
            if (const auto size = parser.member(json, "batch_size"); size && batch_size_ == 0)
                std::from_chars(size->data(), size->data() + size->size(), batch_size_);
        if (key == "distributedInfo")
            for (const auto& [member, fact] :
                 {std::pair{"rank", facts::rank}, {"world_size", facts::world_size}, {"backend", facts::backend}})
                if (const auto value = parser.member(json, member))
                    ledger_.set_fact(fact, *value);
        // Members that every trace has describe the file, others the run.
        const bool of_the_file = key == "schemaVersion" || key == "deviceProperties" || key == "displayTimeUnit" ||
                                 key == "traceName" || key == "distributedInfo";
        ledger_.set_fact((of_the_file ? "trace." : std::string{facts::metadata_prefix}) + std::string{key}, json);
    }

    ImportedTrace finish() {
        const auto order = [](const OperatorRow& row) { return std::tuple{row.thread, row.begin_ns, -row.ns}; };
        std::ranges::stable_sort(ledger_.operators, {}, order);
        name_threads();
        stacks_.finish();
        shift();
        std::vector<OperatorRow> loop = std::move(loop_slices_);
        if (!loop.empty()) {
            loop.insert(loop.end(), ledger_.operators.begin(), ledger_.operators.end());
            std::ranges::stable_sort(loop, {}, order);
        }
        const std::uint32_t loop_thread =
            add_steps(ledger_, loop.empty() ? ledger_.operators : loop, std::max(batch_size_, 1u), warnings_);
        if (loop_thread != nothing) {
            ledger_.set_fact(facts::loop_tid, std::to_string(ledger_.threads[loop_thread].tid));
            if (batch_size_ == 0)
                warnings_.push_back("the trace does not say the batch size: rates are of batches, not of samples");
        }
        if (overhead_ns_ > 0)
            ledger_.set_fact(facts::trace_overhead_ns, std::to_string(overhead_ns_));
        if (loader_slices_ > 0)
            warnings_.push_back(std::to_string(loader_slices_) +
                                " slices of drawpoint's loader are left out: a recording has them");
        if (malformed_ > 0)
            warnings_.push_back(std::to_string(malformed_) +
                                " events without a name, a thread or a valid time are left out");
        for (const auto& [phase, count] : other_phases_)
            warnings_.push_back(std::to_string(count) + " events of phase '" +
                                (phase > ' ' && phase <= '~' ? std::string{phase} : std::string{"?"}) +
                                "' are left out");
        ledger_.sort();
        ImportedTrace trace;
        trace.ledger = std::move(ledger_);
        trace.warnings = std::move(warnings_);
        return trace;
    }

private:
    static std::string key_of(const ChromeEvent& event) {
        return std::string{event.pid} + ' ' + std::string{event.tid};
    }

    std::uint32_t name(std::string_view text) {
        if (const auto found = names_.find(text); found != names_.end())
            return found->second;
        const auto position = static_cast<std::uint32_t>(ledger_.names.size());
        ledger_.names.emplace_back(text);
        names_.emplace(text, position);
        return position;
    }

    static std::uint64_t number_of(std::string_view token) noexcept {
        std::int64_t number = 0;
        const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), number);
        const auto magnitude = static_cast<std::uint64_t>(number);
        return error != std::errc{} ? 0 : number < 0 ? 0 - magnitude : magnitude;
    }

    std::uint32_t thread(const ChromeEvent& event, bool on_device) {
        std::string key = key_of(event);
        if (on_device)
            key += " device";
        const auto [entry, is_new] = threads_.try_emplace(std::move(key));
        if (is_new) {
            entry->second = static_cast<std::uint32_t>(ledger_.threads.size());
            ThreadRow row{.tid = number_of(event.tid)};
            if (on_device) {
                row.device =
                    static_cast<std::int32_t>(event.device.value_or(static_cast<std::int64_t>(number_of(event.pid))));
                row.tid = event.stream ? static_cast<std::uint64_t>(*event.stream) : row.tid;
            } else if (pid_.empty()) {
                pid_ = event.pid;
            }
            ledger_.threads.push_back(std::move(row));
        }
        return entry->second;
    }

    void add_operator(const ChromeEvent& event) {
        const auto kind = kind_of(event.category);
        if (!kind) {   // the span of the whole recording; only its begin is used
            if (event.ts_ns && is_sane(*event.ts_ns))
                started_ns_ = std::min(started_ns_.value_or(*event.ts_ns), *event.ts_ns);
            return;
        }
        if (event.category == "overhead" && event.dur_ns && *event.dur_ns > 0 && is_sane(*event.dur_ns) &&
            is_sane(overhead_ns_ + *event.dur_ns))
            overhead_ns_ += *event.dur_ns;
        if (!operators_ && !says_of_steps(event.name))
            return;
        if (event.name.empty() || event.tid.empty() || !event.ts_ns || !is_sane(*event.ts_ns) ||
            (event.dur_ns && (*event.dur_ns < 0 || !is_sane(*event.dur_ns)))) {
            ++malformed_;
            return;
        }
        const bool on_device = *kind == OperatorKind::kernel || *kind == OperatorKind::memcpy ||
                               *kind == OperatorKind::memset || event.category == "gpu_user_annotation";
        // Our own export writes the loop's and loader's slices like operators, for the programs that read it.
        const bool is_own = is_own_ && !event.has_index;
        if (is_own && event.category == "dataloader") {
            ++loader_slices_;
            return;
        }
        OperatorRow row{.kind = *kind,
                        .ended = event.dur_ns.has_value() && event.ended,
                        .name = name(event.name),
                        .thread = thread(event, on_device),
                        .begin_ns = *event.ts_ns,
                        .ns = event.dur_ns.value_or(0),
                        .sequence = event.sequence,
                        .forward_thread = event.forward_thread,
                        .flops = event.flops,
                        .correlation = event.correlation};
        if (!event.input_dims.empty())
            row.shapes = name(python_list(event.input_dims));
        if (*kind == OperatorKind::python_function)
            stacks_.saw_python_function();
        if (!event.stack_frame.empty())
            row.stack = stacks_.number_of(event.stack_frame);
        (is_own ? loop_slices_ : ledger_.operators).push_back(row);
    }

    void add_allocation(const ChromeEvent& event) {
        if (!event.ts_ns || !is_sane(*event.ts_ns) || event.tid.empty()) {
            ++malformed_;
            return;
        }
        ledger_.allocations.push_back(
            {.at_ns = *event.ts_ns,
             .thread = thread(event, false),
             .device =
                 event.device_type == 0 ? -1 : static_cast<std::int32_t>(std::max<std::int64_t>(event.device_id, 0)),
             .bytes = event.bytes,
             .address = event.address,
             .total_allocated = event.total_allocated});
    }

    /// Names threads; "thread 16996 (python)" becomes "python".
    void name_threads() {
        for (const auto& [key, position] : threads_) {
            ThreadRow& row = ledger_.threads[position];
            const bool on_device = row.device >= 0;
            const auto found =
                thread_names_.find(on_device ? key.substr(0, key.size() - std::string_view{" device"}.size()) : key);
            std::string_view text = found == thread_names_.end() ? std::string_view{} : found->second;
            const std::string prefix = "thread " + std::to_string(row.tid) + " (";
            if (text.starts_with(prefix) && text.ends_with(')'))
                text = text.substr(prefix.size(), text.size() - prefix.size() - 1);
            row.name = text;
            if (const std::size_t quote = key.find(" \""); row.name.empty() && quote != std::string::npos)
                row.name = key.substr(quote + 2, key.rfind('"') - quote - 2);
        }
        if (!pid_.empty()) {
            ledger_.set_fact(facts::process_id, pid_);
            if (const auto found = process_names_.find(pid_); found != process_names_.end())
                ledger_.set_fact(facts::process_name, found->second);
        }
    }

    /// Converts times relative to the trace's base to absolute ones.
    void shift() {
        std::int64_t first = std::numeric_limits<std::int64_t>::max();
        const std::int64_t base = base_ns_.value_or(0);
        for (OperatorRow& row : ledger_.operators)
            first = std::min(first, row.begin_ns += base);
        for (OperatorRow& row : loop_slices_)
            first = std::min(first, row.begin_ns += base);
        for (AllocationRow& row : ledger_.allocations)
            first = std::min(first, row.at_ns += base);
        if (ledger_.operators.empty() && loop_slices_.empty() && ledger_.allocations.empty())
            return;
        ledger_.start_ns = started_ns_ ? std::min(*started_ns_ + base, first) : first;
        if (base_ns_)
            ledger_.set_fact(facts::unix_offset_ns, "0");   // the base is Unix time
    }

    Ledger ledger_;
    std::vector<std::string> warnings_;
    std::unordered_map<std::string, std::uint32_t, TextHash, std::equal_to<>> names_;
    std::map<std::string, std::uint32_t> threads_;
    std::map<std::string, std::string> thread_names_, process_names_;
    std::map<char, std::uint64_t> other_phases_;
    std::string pid_;
    std::optional<std::int64_t> base_ns_, started_ns_;
    std::uint64_t malformed_ = 0;
    std::int64_t overhead_ns_ = 0;
    std::uint32_t batch_size_;
    bool operators_;
    std::vector<OperatorRow> loop_slices_;   // in our own export: slices of the loop, not operators
    std::uint64_t loader_slices_ = 0;
    bool is_own_ = false;
    ChromeStacks stacks_{ledger_, [this](std::string_view text) { return name(text); }};
};

}   // namespace

ImportedTrace import_chrome_trace(std::istream& from, std::string_view name, const ImportOptions& options) {
    InflatingReader reader{from};
    JsonPieces pieces{[&](char* to, std::size_t size) { return reader.read(to, size); }, name, options.block_bytes,
                      options.max_event_bytes};
    ChromeEventParser parser;
    Importer importer{options};
    ChromeEvent event;
    std::uint64_t events = 0;
    const auto fail = [&](std::uint64_t offset, std::string_view what) {
        throw std::runtime_error{std::string{name} + ": byte " + std::to_string(offset) + ": " + std::string{what}};
    };
    while (const auto piece = pieces.next()) {
        if (!piece->key.empty()) {
            // A large member is skipped unparsed like an event, since parsing needs ten times its memory.
            if ((options.operators || piece->text.size() <= most_member_bytes) && !parser.is_valid(piece->text))
                fail(piece->offset, "the value of '" + std::string{piece->key} + "' is no JSON");
            importer.add_member(piece->key, piece->text, parser);
            continue;
        }
        ++events;
        if (!options.operators && !may_say_of_steps(piece->text))
            continue;
        if (const auto error = parser.parse(piece->text, event))
            fail(piece->offset, *error);
        importer.add(event);
    }
    if (from.bad())
        throw std::system_error{EIO, std::generic_category(), std::string{name}};
    if (!pieces.has_events())
        throw std::runtime_error{std::string{name} + ": not a Chrome trace: " +
                                 (pieces.truncated() ? "it ends before its traceEvents" : "it has no traceEvents")};
    ImportedTrace trace = importer.finish();
    trace.truncated = pieces.truncated() || !reader.damage().empty();
    trace.events = events;
    trace.bytes = pieces.bytes();
    trace.buffer_bytes = pieces.buffer_bytes();
    if (trace.truncated)
        trace.warnings.insert(trace.warnings.begin(),
                              std::string{name} + " ends inside, at byte " + std::to_string(trace.bytes) +
                                  (reader.damage().empty() ? "" : " (" + reader.damage() + ")") + ": kept the " +
                                  std::to_string(events) + " whole events before");
    return trace;
}

ImportedTrace import_chrome_trace(const std::filesystem::path& path, const ImportOptions& options) {
    std::ifstream file{path, std::ios::binary};
    if (!file || std::filesystem::is_directory(path))
        throw std::system_error{file ? EISDIR : errno, std::generic_category(), path.string()};
    return import_chrome_trace(file, path.string(), options);
}

}   // namespace drawpoint
