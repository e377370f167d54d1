#include <drawpoint/loop/loggers/file_loggers.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <boost/crc.hpp>
#include <fmt/format.h>
#include <protozero/pbf_writer.hpp>
#include <unistd.h>

#include "loop/loggers/record_file.hpp"
#include "loop/loggers/setting_number.hpp"
#include "loop/loggers/value_histogram.hpp"

// Field numbers are those of TensorBoard's event.proto, summary.proto and tensor.proto.
namespace drawpoint {
namespace {

using protozero::pbf_writer;

template <class T>
void append_little_endian(std::string& to, T value) {
    for (std::size_t byte = 0; byte < sizeof value; ++byte)
        to += static_cast<char>(value >> (8 * byte) & 0xFF);
}

/// TensorFlow's masked CRC-32C: rotated and offset, so that it stays a good checksum of data that contains checksums.
std::uint32_t masked_crc(std::string_view bytes) {
    boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
    crc.process_bytes(bytes.data(), bytes.size());
    const std::uint32_t sum = crc.checksum();
    return (sum >> 15 | sum << 17) + 0xA282EAD8u;
}

/// An event as a record: its length and its bytes, each with a checksum.
std::string framed(std::string_view event) {
    std::string record;
    append_little_endian(record, static_cast<std::uint64_t>(event.size()));
    append_little_endian(record, masked_crc(record));
    record += event;
    append_little_endian(record, masked_crc(event));
    return record;
}

enum EventField : protozero::pbf_tag_type { wall_time = 1, step_number = 2, file_version = 3, summary = 5 };
enum ValueField : protozero::pbf_tag_type { tag = 1, simple_value = 2, histogram = 5, tensor = 8, metadata = 9 };

/// An event with one summary, into which `add` writes its values.
template <class Add>
std::string summary_event(double time_s, std::uint64_t step, Add add) {
    std::string event;
    pbf_writer writer{event};
    writer.add_double(EventField::wall_time, time_s);
    writer.add_int64(EventField::step_number, static_cast<std::int64_t>(step));
    {
        pbf_writer values{writer, EventField::summary};
        add(values);
    }
    return framed(event);
}

constexpr protozero::pbf_tag_type value_field = 1;   // in the message Summary

std::string markdown(const LogTable& table) {
    std::string text;
    const auto add_row = [&](const std::vector<std::string>& cells) {
        for (const std::string& one : cells) {
            text += "| ";
            for (const char c : one)
                text += c == '|' ? std::string{"\\|"} : std::string{c == '\n' || c == '\r' ? ' ' : c};
            text += ' ';
        }
        text += "|\n";
    };
    add_row(table.titles);
    for (std::size_t column = 0; column < table.titles.size(); ++column)
        text += "| --- ";
    text += "|\n";
    std::ranges::for_each(table.rows, add_row);
    return text;
}

/// A value that is a text, for the plugin that shows it.
void add_string_value(pbf_writer& values, std::string_view name, std::string_view text, std::string_view plugin_name) {
    constexpr std::int32_t string_type = 7, data_class_tensor = 2;
    pbf_writer value{values, value_field};
    value.add_string(ValueField::tag, name.data(), name.size());
    {
        pbf_writer tensor{value, ValueField::tensor};
        tensor.add_enum(1, string_type);
        {
            pbf_writer shape{tensor, 2}, dimension{shape, 2};
            dimension.add_int64(1, 1);
        }
        tensor.add_bytes(8, text.data(), text.size());
    }
    pbf_writer about{value, ValueField::metadata};
    {
        pbf_writer plugin{about, 1};
        plugin.add_string(1, plugin_name.data(), plugin_name.size());
    }
    about.add_enum(4, data_class_tensor);
}

std::filesystem::path new_file_name(unsigned number) {
    std::array<char, 256> host{};
    if (::gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0')
        host = {'l', 'o', 'c', 'a', 'l', 'h', 'o', 's', 't'};
    return fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<std::int64_t>(wall_time_s()), host.data(),
                       ::getpid(), number);
}

std::unique_ptr<RecordFile> make_file(const std::filesystem::path& folder) {
    for (unsigned number = 0;; ++number)
        try {
            return std::make_unique<RecordFile>(folder / new_file_name(number), RecordFile::Mode::exclusive);
        } catch (const std::system_error& failed) {
            if (failed.code().value() != EEXIST)
                throw;
        }
}

}   // namespace

TensorBoardLogger::TensorBoardLogger(const std::filesystem::path& folder) : file_{make_file(folder)} {
    std::string event;
    pbf_writer writer{event};
    writer.add_double(EventField::wall_time, wall_time_s());
    writer.add_string(EventField::file_version, "brain.Event:2");
    file_->write(framed(event));
}

TensorBoardLogger::~TensorBoardLogger() = default;

void TensorBoardLogger::log_scalars(std::span<const Scalar> scalars, std::uint64_t step) {
    last_step_ = step;
    file_->write(summary_event(time_s_.value_or(wall_time_s()), step, [&](pbf_writer& values) {
        for (const Scalar& scalar : scalars) {
            pbf_writer value{values, value_field};
            value.add_string(ValueField::tag, scalar.name.data(), scalar.name.size());
            value.add_float(ValueField::simple_value, static_cast<float>(scalar.value));
        }
    }));
}

void TensorBoardLogger::log_summary(std::string_view name, std::span<const double> values) {
    const auto histogram = histogram_of(values);
    if (!histogram)
        return;
    file_->write(summary_event(time_s_.value_or(wall_time_s()), last_step_, [&](pbf_writer& summary_values) {
        pbf_writer value{summary_values, value_field};
        value.add_string(ValueField::tag, name.data(), name.size());
        pbf_writer histo{value, ValueField::histogram};
        histo.add_double(1, histogram->low);
        histo.add_double(2, histogram->right_edges.back());
        histo.add_double(3, histogram->count);
        histo.add_double(4, histogram->sum);
        histo.add_double(5, histogram->sum_of_squares);
        histo.add_packed_double(6, histogram->right_edges.begin(), histogram->right_edges.end());
        histo.add_packed_double(7, histogram->counts.begin(), histogram->counts.end());
    }));
}

void TensorBoardLogger::log_table(std::string_view name, const LogTable& table) { log_text(name, markdown(table)); }

void TensorBoardLogger::log_text(std::string_view name, std::string_view text) {
    file_->write(summary_event(time_s_.value_or(wall_time_s()), last_step_,
                               [&](pbf_writer& values) { add_string_value(values, name, text, "text"); }));
}

void TensorBoardLogger::log_charts(std::string_view category, std::span<const ScalarChart> charts) {
    std::string layout;
    pbf_writer writer{layout};
    {
        pbf_writer group{writer, 2};
        group.add_string(1, category.data(), category.size());
        for (const ScalarChart& chart : charts) {
            pbf_writer one{group, 2};
            one.add_string(1, chart.title.data(), chart.title.size());
            pbf_writer lines{one, 2};
            for (const std::string_view tag : chart.names)
                lines.add_string(1, fmt::format("^{}$", tag));
        }
    }
    file_->write(summary_event(time_s_.value_or(wall_time_s()), 0, [&](pbf_writer& values) {
        add_string_value(values, "custom_scalars__config__", layout, "custom_scalars");
    }));
}

void TensorBoardLogger::log_settings(std::span<const LogSetting> settings, std::span<const std::string_view> metrics) {
    if (std::exchange(has_settings_, true))   // it would keep the first ones
        return;
    std::string experiment, start;
    {
        pbf_writer writer{experiment};
        pbf_writer data{writer, 2};
        for (const LogSetting& setting : settings) {
            pbf_writer info{data, 4};
            info.add_string(1, setting.name.data(), setting.name.size());
            info.add_enum(4, number_in(setting.value) ? 3 : 1);   // a number or a text
        }
        for (const std::string_view metric : metrics) {
            pbf_writer info{data, 5};
            pbf_writer name{info, 1};
            name.add_string(2, metric.data(), metric.size());
        }
    }
    {
        pbf_writer writer{start};
        pbf_writer data{writer, 3};
        for (const LogSetting& setting : settings) {
            pbf_writer entry{data, 1};
            entry.add_string(1, setting.name.data(), setting.name.size());
            pbf_writer value{entry, 2};
            if (const auto number = number_in(setting.value))
                value.add_double(2, *number);
            else
                value.add_string(3, setting.value.data(), setting.value.size());
        }
        data.add_double(5, time_s_.value_or(wall_time_s()));
    }
    write_hparams("_hparams_/experiment", experiment);
    write_hparams("_hparams_/session_start_info", start);
}

void TensorBoardLogger::finish() {
    if (!std::exchange(has_settings_, false))
        return;
    std::string end;
    {
        pbf_writer writer{end};
        pbf_writer data{writer, 4};
        data.add_enum(1, end_ == RunEnd::finished ? 1 : 2);
        data.add_double(2, time_s_.value_or(wall_time_s()));
    }
    write_hparams("_hparams_/session_end_info", end);
}

void TensorBoardLogger::write_hparams(std::string_view name, std::string_view content) {
    file_->write(summary_event(time_s_.value_or(wall_time_s()), 0, [&](pbf_writer& values) {
        pbf_writer value{values, value_field};
        value.add_string(ValueField::tag, name.data(), name.size());
        {
            pbf_writer nothing{value, ValueField::tensor};   // which TensorBoard asks for
            nothing.add_enum(1, 1);
            pbf_writer shape{nothing, 2};
        }
        pbf_writer about{value, ValueField::metadata};
        pbf_writer plugin{about, 1};
        plugin.add_string(1, "hparams");
        plugin.add_bytes(2, content.data(), content.size());
    }));
}

std::string TensorBoardLogger::error() const { return file_->error(); }
const std::filesystem::path& TensorBoardLogger::file() const noexcept { return file_->path(); }

}   // namespace drawpoint
