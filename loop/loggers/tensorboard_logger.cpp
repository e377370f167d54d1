#include <drawpoint/loop/loggers/file_loggers.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <numeric>
#include <system_error>

#include <boost/crc.hpp>
#include <fmt/format.h>
#include <protozero/pbf_writer.hpp>
#include <unistd.h>

#include "loop/loggers/record_file.hpp"

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
std::string summary_event(std::uint64_t step, Add add) {
    std::string event;
    pbf_writer writer{event};
    writer.add_double(EventField::wall_time, wall_time_s());
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
    file_->write(summary_event(step, [&](pbf_writer& values) {
        for (const Scalar& scalar : scalars) {
            pbf_writer value{values, value_field};
            value.add_string(ValueField::tag, scalar.name.data(), scalar.name.size());
            value.add_float(ValueField::simple_value, static_cast<float>(scalar.value));
        }
    }));
}

void TensorBoardLogger::log_summary(std::string_view name, std::span<const double> all) {
    std::vector<double> values;
    std::ranges::copy_if(all, std::back_inserter(values), [](double value) { return std::isfinite(value); });
    if (values.empty())
        return;
    const auto [low, high] = std::ranges::minmax(values);
    const std::size_t buckets = low == high ? 1 : 30;
    const double width = (high - low) / static_cast<double>(buckets);
    std::vector<double> right_edges(buckets, high), counts(buckets, 0);
    for (std::size_t bucket = 0; bucket + 1 < buckets; ++bucket)
        right_edges[bucket] = low + width * static_cast<double>(bucket + 1);
    for (const double value : values)
        ++counts[std::min(static_cast<std::size_t>(std::ranges::lower_bound(right_edges, value) - right_edges.begin()),
                          buckets - 1)];
    file_->write(summary_event(last_step_, [&](pbf_writer& summary_values) {
        pbf_writer value{summary_values, value_field};
        value.add_string(ValueField::tag, name.data(), name.size());
        pbf_writer histo{value, ValueField::histogram};
        histo.add_double(1, low);
        histo.add_double(2, high);
        histo.add_double(3, static_cast<double>(values.size()));
        histo.add_double(4, std::accumulate(values.begin(), values.end(), 0.0));
        histo.add_double(5, std::inner_product(values.begin(), values.end(), values.begin(), 0.0));
        histo.add_packed_double(6, right_edges.begin(), right_edges.end());
        histo.add_packed_double(7, counts.begin(), counts.end());
    }));
}

void TensorBoardLogger::log_table(std::string_view name, const LogTable& table) {
    constexpr std::int32_t string_type = 7, data_class_tensor = 2;
    file_->write(summary_event(last_step_, [&](pbf_writer& values) {
        pbf_writer value{values, value_field};
        value.add_string(ValueField::tag, name.data(), name.size());
        {
            pbf_writer text{value, ValueField::tensor};
            text.add_enum(1, string_type);
            {
                pbf_writer shape{text, 2}, dimension{shape, 2};
                dimension.add_int64(1, 1);
            }
            text.add_bytes(8, markdown(table));
        }
        pbf_writer about{value, ValueField::metadata};
        {
            pbf_writer plugin{about, 1};
            plugin.add_string(1, "text");
        }
        about.add_enum(4, data_class_tensor);
    }));
}

std::string TensorBoardLogger::error() const { return file_->error(); }
const std::filesystem::path& TensorBoardLogger::file() const noexcept { return file_->path(); }

}   // namespace drawpoint
