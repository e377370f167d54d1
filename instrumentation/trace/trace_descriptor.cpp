#include "instrumentation/trace/trace_descriptor.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <protozero/pbf_writer.hpp>

#include <drawpoint/instrumentation/ledger/folded.hpp>

#include "instrumentation/trace/trace_columns.hpp"
#include "instrumentation/trace/trace_fields.hpp"

namespace drawpoint {
namespace {

namespace f = trace_fields;
using protozero::pbf_writer;

// Field numbers of Google's descriptor.proto.
namespace file {
constexpr f::Tag name = 1, package = 2, message = 4, enumeration = 5;
}
namespace message {
constexpr f::Tag name = 1, field = 2, enumeration = 4, extension = 6;
}
namespace field {
constexpr f::Tag name = 1, extended = 2, number = 3, label = 4, type = 5, type_name = 6, options = 8, packed = 2;
constexpr std::int32_t optional = 1, repeated = 3;
}   // namespace field

/// The declaration of a field; `type_name` only for a message or an enumeration.
struct Declared {
    f::Field field;
    std::string type_name;
};

std::string upper(std::string text) {
    std::transform(text.begin(), text.end(), text.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

/// Converts to snake case: "EndOfData" becomes "end_of_data".
std::string snake(std::string_view name) {
    std::string text;
    for (const char c : name) {
        if (std::isupper(static_cast<unsigned char>(c)) != 0 && !text.empty())
            text += '_';
        text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    return text;
}

/// The name of an enumeration: inside `record`, or at file level if several records use it.
constexpr std::string_view enum_name(Phase, std::string_view) { return "Phase"; }
constexpr std::string_view enum_name(PassKind, std::string_view) { return "PassKind"; }
std::string enum_name(StepStatus, std::string_view record) { return std::string{record} + ".Status"; }
std::string enum_name(BatchStatus, std::string_view record) { return std::string{record} + ".Status"; }
std::string enum_name(SampleStatus, std::string_view record) { return std::string{record} + ".Status"; }
std::string enum_name(OperatorKind, std::string_view record) { return std::string{record} + ".Kind"; }
std::string enum_name(LoaderKind, std::string_view record) { return std::string{record} + ".Kind"; }

/// The declared type of a column's field.
template <class T, class Kind>
constexpr f::Type type_of() {
    using Value = field_value<T>;
    if constexpr (std::is_same_v<Kind, schema::Signed>)
        return f::Type::sint64;
    else if constexpr (std::is_same_v<Value, std::string>)
        return f::Type::text;
    else if constexpr (std::is_same_v<Value, double>)
        return f::Type::float64;
    else if constexpr (std::is_same_v<Value, bool>)
        return f::Type::boolean;
    else if constexpr (std::is_enum_v<Value>)
        return f::Type::enumeration;
    else if constexpr (sizeof(Value) < 8)
        return f::Type::uint32;
    else if constexpr (std::is_same_v<Kind, schema::SinceStart> ||
                       (std::is_same_v<Kind, schema::Count> && std::is_signed_v<Value>))
        return f::Type::int64;
    else
        return f::Type::uint64;
}

template <class Row>
void add_columns(std::vector<Declared>& to, std::string_view record) {
    const auto add = [&]<class T, class Kind>(const schema::Column<Row, T, Kind>& column) {
        if constexpr (FieldKind<Kind>) {
            Declared declared{
                {column.name, column.kind.field, type_of<T, Kind>(), std::is_same_v<T, std::vector<std::string>>}, {}};
            if constexpr (std::is_same_v<Kind, schema::Count>)
                if (!column.kind.field_name.empty())
                    declared.field.name = column.kind.field_name;
            if constexpr (std::is_enum_v<T>)
                declared.type_name = ".drawpoint." + std::string{enum_name(T{}, record)};
            to.push_back(std::move(declared));
        }
    };
    schema::walk<Row>([&](const auto&... columns) { (add(columns), ...); });
}

void put_field(pbf_writer& to, f::Tag tag, const Declared& declared, std::string_view extended = {}) {
    const f::Field& what = declared.field;
    pbf_writer in{to, tag};
    in.add_string(field::name, what.name.data(), what.name.size());
    if (!extended.empty())
        in.add_string(field::extended, extended.data(), extended.size());
    in.add_int32(field::number, static_cast<std::int32_t>(what.number));
    in.add_int32(field::label, what.repeated ? field::repeated : field::optional);
    in.add_int32(field::type, static_cast<std::int32_t>(what.type));
    if (!declared.type_name.empty())
        in.add_string(field::type_name, declared.type_name);
    if (what.repeated && what.type != f::Type::text && what.type != f::Type::message)
        pbf_writer{in, field::options}.add_bool(field::packed, true);
}

/// Declares the enumeration `E` as `name` in a message or in the file. `clashing_end` is appended to enumerators whose
/// names another enumeration of the file has.
template <class E>
void put_enum(pbf_writer& to, f::Tag tag, std::string_view name, std::string_view clashing_end = {}) {
    pbf_writer in{to, tag};
    in.add_string(1, name.data(), name.size());
    for (std::int32_t i = 0; i <= static_cast<std::int32_t>(last_of(E{})); ++i) {
        const std::string_view label = name_of(static_cast<E>(i));
        const bool clashes = !clashing_end.empty() && (label == "train" || label == "valid");
        pbf_writer value{in, 2};
        value.add_string(1, upper(std::string{label}) + std::string{clashes ? clashing_end : ""});
        value.add_int32(2, i);
    }
}

/// Declares messages: their fields and, if there is one, their own enumeration.
class Messages {
public:
    explicit Messages(pbf_writer& file) : file_{&file} {}

    void add(std::string_view name, std::vector<Declared> fields) {
        put(name, std::move(fields), [](pbf_writer&) {});
    }
    /// Declares a message with the fields of a row's columns and the fields `more`.
    template <class Row>
    void add_row(std::string_view name, std::initializer_list<f::Field> more) {
        add_row_with<Row>(name, more, [](pbf_writer&) {});
    }
    /// The same with fields that are messages.
    template <class Row>
    void add_row_of(std::string_view name, std::vector<Declared> fields) {
        add_columns<Row>(fields, name);
        put(name, std::move(fields), [](pbf_writer&) {});
    }
    template <class Row, class E>
    void add_row(std::string_view name, std::initializer_list<f::Field> more, std::string_view of_enum) {
        add_row_with<Row>(name, more, [&](pbf_writer& to) { put_enum<E>(to, message::enumeration, of_enum); });
    }

private:
    template <class Row, class Inner>
    void add_row_with(std::string_view name, std::initializer_list<f::Field> more, Inner put_inner) {
        std::vector<Declared> fields;
        add_columns<Row>(fields, name);
        for (const f::Field& one : more)
            fields.push_back({one, {}});
        put(name, std::move(fields), put_inner);
    }
    template <class Inner>
    void put(std::string_view name, std::vector<Declared> fields, Inner put_inner) {
        std::sort(fields.begin(), fields.end(),
                  [](const Declared& a, const Declared& b) { return a.field.number < b.field.number; });
        pbf_writer to{*file_, file::message};
        to.add_string(message::name, name.data(), name.size());
        for (const Declared& one : fields)
            put_field(to, message::field, one);
        put_inner(to);
    }

    pbf_writer* file_;
};

/// A record and the number of the field of the event or packet that contains it.
struct Extension {
    std::string_view record;
    f::Tag number;
};

void put_extensions(pbf_writer& file, std::string_view name, std::string_view extended,
                    std::initializer_list<Extension> extensions) {
    pbf_writer to{file, file::message};
    to.add_string(message::name, name.data(), name.size());
    for (const Extension& one : extensions) {
        std::string name_of_field = snake(one.record);
        put_field(to, message::extension,
                  {{name_of_field, one.number, f::Type::message}, ".drawpoint." + std::string{one.record}}, extended);
    }
}

std::vector<Declared> fields_of(std::initializer_list<f::Field> fields) {
    std::vector<Declared> all;
    for (const f::Field& one : fields)
        all.push_back({one, {}});
    return all;
}

void put_records(pbf_writer& file) {
    Messages messages{file};
    using f::early_ns;
    messages.add_row<SampleRow, SampleStatus>("Sample",
                                              {f::sample::cpu_ns, f::sample::stage_ns, f::sample::gap_ns, early_ns,
                                               f::sample::stage_idle_ns, f::sample::other_cpu_ns},
                                              "Status");
    messages.add_row<BatchRow, BatchStatus>("Batch", {f::batch::stamps, f::batch::never_admitted, early_ns}, "Status");
    messages.add_row<StepRow, StepStatus>("Step", {f::step::spans, f::step::gap_ns, early_ns}, "Status");
    messages.add("Run", fields_of({f::run::format, f::run::minor, f::run::start_ns, f::run::spans}));
    messages.add_row<DroppedRow>("Dropped", {});
    messages.add_row<PassRow>("PassBegin", {early_ns});
    messages.add_row<PassRow>("Pass", {f::pass::ns, f::pass::spans, f::pass::gap_ns, early_ns});
    messages.add_row<ThinningRow>("Thinning", {early_ns});
    messages.add_row<FailureRow>("Failure", {});
    messages.add_row<EndOfDataRow>("EndOfData", {early_ns});
    messages.add("Fact", fields_of({f::fact::key, f::fact::value}));
    messages.add_row<PipelineRow, LoaderKind>("Pipeline", {f::pipeline::number}, "Kind");
    messages.add_row<SettingRow>("Setting", {early_ns});
    messages.add_row<OrderRow>("Order", {early_ns});
    messages.add_row<TransferRow>("Transfer", {early_ns});
    messages.add_row<DeviceStepRow>("DeviceStep", {early_ns});
    messages.add_row<HostRow>("Host", {early_ns});
    messages.add_row<OperatorRow, OperatorKind>("Operator", {early_ns}, "Kind");
    messages.add("OperatorEnd", fields_of({f::operator_end::thread, f::operator_end::lost, early_ns}));
    messages.add_row<AllocationRow>("Allocation", {early_ns});
    messages.add_row<StackSampleRow>("StackSample", {early_ns});
    namespace h = f::histogram;
    messages.add("Histogram", fields_of({h::total_ns, h::min_ns, h::max_ns, h::mean_ns, h::squares, h::calls}));
    messages.add_row<StageUsage>("StageUsage", {});
    messages.add_row<DrawSplit>("DrawSplit", {});
    messages.add_row<DeviceTotals>("DeviceTotals", {});
    messages.add_row_of<FoldedAction>("FoldedAction",
                                      {{f::folded::action, {}}, {f::folded::action_durations, ".drawpoint.Histogram"}});
    messages.add_row_of<FoldedStage>("FoldedStage", {{f::folded::usage, ".drawpoint.StageUsage"},
                                                     {f::folded::stage_durations, ".drawpoint.Histogram"}});
    messages.add_row<FoldedWorker>("FoldedWorker", {});
    messages.add_row_of<Folded>("Folded", {{f::folded::draw, ".drawpoint.DrawSplit"},
                                           {f::folded::actions, ".drawpoint.FoldedAction"},
                                           {f::folded::stages, ".drawpoint.FoldedStage"},
                                           {f::folded::workers, ".drawpoint.FoldedWorker"},
                                           {f::folded::device, ".drawpoint.DeviceTotals"}});
    namespace r = f::record;
    put_extensions(file, "TrackEventExtension", ".perfetto.protos.TrackEvent",
                   {{"Sample", r::sample},
                    {"Batch", r::batch},
                    {"Step", r::step},
                    {"Run", r::run},
                    {"Dropped", r::dropped},
                    {"PassBegin", r::pass_begin},
                    {"Pass", r::pass},
                    {"Thinning", r::thinning},
                    {"Failure", r::failure},
                    {"EndOfData", r::end_of_data},
                    {"Fact", r::fact},
                    {"Pipeline", r::pipeline},
                    {"Operator", r::operator_begin},
                    {"OperatorEnd", r::operator_end},
                    {"Allocation", r::allocation},
                    {"StackSample", r::stack_sample},
                    {"Setting", r::setting},
                    {"Host", r::host},
                    {"Folded", r::folded},
                    {"Order", r::order},
                    {"Transfer", r::transfer},
                    {"DeviceStep", r::device_step}});
    messages.add("Block", fields_of({f::block::offset, f::block::crc32, f::block::records, f::block::dropped,
                                     f::block::bytes, f::block::header_crc32}));
    messages.add_row<ThreadRow>("Thread", {});
    messages.add("Definitions", {{f::definitions::names, {}},
                                 {f::definitions::threads, ".drawpoint.Thread"},
                                 {f::definitions::frames, {}},
                                 {f::definitions::stacks, {}},
                                 {f::definitions::names_before, {}},
                                 {f::definitions::frames_before, {}},
                                 {f::definitions::stacks_before, {}},
                                 {f::definitions::thread_numbers, {}}});
    put_extensions(file, "PacketExtension", ".perfetto.protos.TracePacket",
                   {{"Block", f::packet::block}, {"Definitions", f::packet::definitions}});
}

}   // namespace

std::string trace_descriptor() {
    std::string set;
    {
        pbf_writer writer{set};
        pbf_writer file{writer, 1};
        file.add_string(file::name, "drawpoint_trace.proto");
        file.add_string(file::package, "drawpoint");
        put_records(file);
        put_enum<Phase>(file, file::enumeration, "Phase");
        put_enum<PassKind>(file, file::enumeration, "PassKind", "_PASS");
    }
    return set;
}

}   // namespace drawpoint
