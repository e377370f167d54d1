#include <drawpoint/instrumentation/export/json.hpp>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <drawpoint/instrumentation/export/chrome.hpp>
#include <drawpoint/instrumentation/facts.hpp>
#include <drawpoint/instrumentation/report/json.hpp>
#include "instrumentation/export/text_stream.hpp"

namespace drawpoint {
namespace {

class LedgerJson {
public:
    LedgerJson(const Ledger& ledger, std::ostream& out) : ledger_{ledger}, out_{out} {}

    void write() {
        head();
        column("pipelines", ledger_.pipelines);
        column("passes", ledger_.passes);
        column("steps", ledger_.steps);
        column("ends_of_data", ledger_.ends_of_data);
        column("batches", ledger_.batches);
        column("samples", ledger_.samples);
        column("failures", ledger_.failures);
        column("settings", ledger_.settings);
        column("orders", ledger_.orders);
        column("transfers", ledger_.transfers);
        column("device_steps", ledger_.device_steps);
        column("host", ledger_.host);
        column("dropped", ledger_.dropped);
        column("thinnings", ledger_.thinnings);
        column("names", ledger_.names);
        column("threads", ledger_.threads);
        column("operators", ledger_.operators);
        column("allocations", ledger_.allocations);
        column("frames", ledger_.frames);
        column("stacks", ledger_.stacks);
        column("stack_samples", ledger_.stack_samples);
        folded();
        out_.put("\n}\n");
        out_.flush();
    }

private:
    /// Writes the fields that every document has, then the run's start and its facts.
    void head() {
        const auto text = [this](std::string_view key) { return std::string{ledger_.fact(key).value_or("")}; };
        Machine machine{.cpu = text(facts::machine_cpu),
                        .kernel = text(facts::machine_kernel),
                        .compiler = text(facts::machine_compiler)};
        const std::string cores = text(facts::machine_cores);
        std::int64_t number = 0;
        if (std::from_chars(cores.data(), cores.data() + cores.size(), number).ec == std::errc{})
            machine.cores_usable = number;
        for (const auto& [key, value] : ledger_.facts)
            if (key.starts_with(facts::machine_library_prefix))
                machine.libraries.emplace_back(key.substr(facts::machine_library_prefix.size()), value);
        std::string document = json_text(json_document(
            "drawpoint.ledger/1", {.version = text(facts::version), .command = text(facts::command)}, machine));
        document.resize(document.rfind('\n', document.rfind('}')));   // removes the closing brace; more fields follow
        out_.put(document);
        out_.print(",\n  \"start_ns\": {},\n  \"facts\": {{", ledger_.start_ns);
        bool first = true;
        for (const auto& [key, value] : ledger_.facts)
            out_.print("{}\n    {}: {}", std::exchange(first, false) ? "" : ",", json_string(key), json_string(value));
        out_.put("\n  }");
    }

    /// Writes the totals of the folded rows, which are in no column.
    void folded() {
        out_.put(",\n  \"folded\": {");
        first_field_ = true;
        field("steps", ledger_.folded.steps);
        field("failed", ledger_.folded.failed);
        field("not_drawn", ledger_.folded.not_drawn);
        field("samples", ledger_.folded.samples);
        const std::int64_t until_ns = ledger_.folded.until_ns;
        field("until_ns", until_ns == no_stamp ? std::nullopt : std::optional{until_ns});
        field("draws_ns", ledger_.folded.draws_ns);
        field("batches_ns", ledger_.folded.batches_ns);
        out_.put("}");
    }

    /// Writes a column of rows or of texts.
    template <class Row>
    void column(std::string_view name, const std::vector<Row>& rows) {
        out_.print(",\n  \"{}\": [", name);
        bool first = true;
        for (const Row& row : rows) {
            out_.put(std::exchange(first, false) ? "\n    " : ",\n    ");
            value(row);
        }
        out_.put("]");
    }
    /// Writes a list of rows inside a row, on one line.
    template <class Rows>
    void list(const Rows& rows) {
        out_.put("[");
        bool first = true;
        for (const auto& row : rows) {
            out_.put(std::exchange(first, false) ? "" : ", ");
            value(row);
        }
        out_.put("]");
    }

    void key(std::string_view name) { out_.print("{}\"{}\": ", std::exchange(first_field_, false) ? "" : ", ", name); }
    template <class T>
    void field(std::string_view name, const T& what) {
        key(name);
        value(what);
    }

    /// Writes a row as an object with its columns as fields.
    template <class Row>
        requires std::is_class_v<Row>
    void value(const Row& row) {
        out_.put("{");
        first_field_ = true;
        schema::walk<Row>([&](const auto&... columns) { (field_of(row, columns), ...); });
        out_.put("}");
    }
    template <class Row, class T, class Kind>
    void field_of(const Row& row, const schema::Column<Row, T, Kind>& column) {
        key(column.name);
        const T& what = row.*column.member;
        if constexpr (std::is_same_v<Kind, schema::Part>)
            side_column(row);
        else
            is_null<Kind>(what, column.kind) ? out_.put("null") : value(what);
    }
    void side_column(const SampleRow& row) { list(ledger_.stages_of(row)); }
    template <class Row>
    void side_column(const Row& row) {
        list(ledger_.spans_of(row));
    }

    /// Whether this value of a column of this kind means "no value".
    template <class Kind, class T>
    static bool is_null([[maybe_unused]] const T& what, [[maybe_unused]] const Kind& kind) {
        if constexpr (std::is_same_v<Kind, schema::Time>)
            return kind.optional && what == no_stamp;
        else if constexpr (std::is_same_v<T, std::int64_t> &&
                           (std::is_same_v<Kind, schema::Measured> || std::is_same_v<Kind, schema::Before> ||
                            std::is_same_v<Kind, schema::Stamp>))
            return what == no_stamp;
        else if constexpr (std::is_same_v<T, std::int64_t> && std::is_same_v<Kind, schema::PlusOne>)
            return what < 0;
        else if constexpr (std::is_same_v<T, std::uint32_t> &&
                           (std::is_same_v<Kind, schema::Position> || std::is_same_v<Kind, schema::PlusOne>))
            return what == std::numeric_limits<std::uint32_t>::max();
        else if constexpr (std::is_same_v<Kind, schema::Order>)
            return what == OrderRule::out_of_order();
        else
            return false;
    }

    template <class T>
        requires std::is_arithmetic_v<T>
    void value(T number) {
        if constexpr (std::is_floating_point_v<T>)
            if (!std::isfinite(number))
                return out_.put("null");
        out_.print("{}", number);
    }
    template <class E>
        requires std::is_enum_v<E>
    void value(E enumerator) {
        out_.print("\"{}\"", name_of(enumerator));
    }
    void value(OrderRule order) { value(order.max_overtakes); }
    void value(const std::string& text) { out_.put(json_string(text)); }
    void value(const std::vector<std::string>& texts) { list(texts); }
    template <class T>
    void value(const std::optional<T>& optional) {
        optional ? value(*optional) : out_.put("null");
    }

    const Ledger& ledger_;
    TextStream out_;
    bool first_field_ = true;
};

}   // namespace

void write_json_ledger(const Ledger& ledger, std::ostream& out) { LedgerJson{ledger, out}.write(); }

}   // namespace drawpoint
