#include <drawpoint/pipeline/stages/array_rows.hpp>

#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include <drawpoint/pipeline/stages/detail/stage_timer.hpp>

#include "pipeline/stages/array_data.hpp"
#include "pipeline/stages/copy_rows.hpp"

namespace drawpoint {

/// Of each channel, or of all.
struct ArrayFloats {
    std::vector<float> mean, deviation;
    std::size_t channels = 1;
};

namespace {

constexpr std::size_t read_at_once = std::size_t{256} << 10;   // bytes, or one record if that is more

struct ArrayScratch final : WorkerScratch {
    std::vector<std::byte> records;   // read, not yet copied
};

/// Whether samples are read right to their places.
bool reads_in_place(const ArrayData& data, bool floats) {
    return !floats && !data.label && data.record_bytes == data.layout.bytes();
}

/// Copies from records that lie from `records` on; `indices` count from there, `out` is the first one's place.
void copy(const ArrayData& data, const ArrayFloats* floats, const std::byte* records,
          std::span<const std::uint64_t> indices, std::byte* out) {
    const std::size_t values = data.layout.bytes();
    if (floats == nullptr)
        return copy_rows(records + data.data_at, data.record_bytes, values, indices, out);
    const std::size_t plane = values / floats->channels;
    auto* to = reinterpret_cast<float*>(out);
    for (const std::uint64_t index : indices) {
        const std::byte* from = records + index * data.record_bytes + data.data_at;
        for (std::size_t c = 0; c < floats->channels; ++c, from += plane, to += plane)
            normalize_bytes(from, plane, floats->mean[c], floats->deviation[c], to);
    }
}

/// How many of `indices` follow one another in one file, at most `most`.
std::size_t neighbours(const ArrayData& data, std::span<const std::uint64_t> indices, std::size_t most) {
    const ArrayPart& part = data.part_of(indices.front());
    std::size_t count = 1;
    while (count < std::min(indices.size(), most) && indices[count] == indices[count - 1] + 1 &&
           indices[count] < part.first + part.count)
        ++count;
    return count;
}

void read_run(const ArrayData& data, const ArrayFloats* floats, SampleRun& run, ArrayScratch& scratch) {
    const std::size_t bytes = data.layout.bytes() * (floats != nullptr ? sizeof(float) : 1);
    const bool in_place = reads_in_place(data, floats != nullptr);
    const std::size_t most = in_place ? run.indices.size() : scratch.records.size() / data.record_bytes;
    for (std::size_t i = 0; i < run.indices.size();) {
        const std::uint64_t first = run.indices[i];
        const std::size_t count = neighbours(data, run.indices.subspan(i), most);
        std::byte* const out = run.data + i * bytes;
        std::byte* const to = in_place ? out : scratch.records.data();
        const std::size_t wanted = count * data.record_bytes;
        data.part_of(first).file->read(data.offset_of(first), {to, wanted});
        run.bytes_read += wanted;
        for (std::size_t k = 0; k < count; ++k) {
            const std::byte* const record = to + k * data.record_bytes;
            run.targets[i + k] = data.target_of(first + k, record);
            const std::uint64_t place = k;
            if (!in_place)
                copy(data, floats, to, {&place, 1}, out + k * bytes);
        }
        if (floats == nullptr)
            data.to_native(out, count * bytes);
        i += count;
    }
}

}   // namespace

ArrayRows::ArrayRows(std::shared_ptr<const ArrayData> data) : data_{std::move(data)} {}

ArrayRows ArrayRows::to_float(std::vector<float> mean, std::vector<float> standard_deviation) const {
    const SampleLayout& layout = data_->layout;
    if (layout.type != ScalarType::uint8 || floats_)
        throw std::invalid_argument{"ArrayRows::to_float: the values are not uint8"};
    const std::size_t channels = layout.rank == 3 ? static_cast<std::size_t>(layout.shape[0]) : 1;
    const auto fit = [channels](std::vector<float>& numbers, float otherwise, const char* name) {
        if (numbers.empty())
            numbers.push_back(otherwise);
        if (numbers.size() != 1 && numbers.size() != channels)
            throw std::invalid_argument{
                fmt::format("ArrayRows::to_float: {} must be 1 or {} numbers, one for each channel, got {}", name,
                            channels, numbers.size())};
        if (numbers.size() == 1)
            numbers.resize(channels, numbers.front());
    };
    fit(mean, 0, "mean");
    fit(standard_deviation, 1, "standard_deviation");
    for (const float deviation : standard_deviation)
        if (!(deviation > 0))
            throw std::invalid_argument{
                fmt::format("ArrayRows::to_float: standard_deviation must be above 0, got {}", deviation)};
    ArrayRows rows = *this;
    rows.floats_ = std::make_shared<const ArrayFloats>(std::move(mean), std::move(standard_deviation), channels);
    return rows;
}

ArrayRows operator|(const ArrayRows& rows, const Normalize& normalize) {
    return rows.to_float({normalize.mean.begin(), normalize.mean.end()},
                         {normalize.standard_deviation.begin(), normalize.standard_deviation.end()});
}

bool ArrayRows::in_memory() const noexcept { return data_->records != nullptr; }
std::size_t ArrayRows::size() const noexcept { return data_->size; }

SampleLayout ArrayRows::layout() const noexcept {
    SampleLayout layout = data_->layout;
    if (floats_)
        layout.type = ScalarType::float32;
    return layout;
}

std::vector<std::string> ArrayRows::stages() const {
    return {std::string{in_memory() ? "copy" : "read"} + (floats_ ? "+to_float" : "")};
}

std::string ArrayRows::path(std::uint64_t index) const {
    return fmt::format("{}, byte {}", data_->part_of(index).path, data_->offset_of(index));
}

std::unique_ptr<WorkerScratch> ArrayRows::make_scratch() const {
    auto scratch = std::make_unique<ArrayScratch>();
    if (!in_memory() && !reads_in_place(*data_, floats_ != nullptr))
        scratch->records.resize(std::max<std::size_t>(read_at_once / data_->record_bytes, 1) * data_->record_bytes);
    return scratch;
}

void ArrayRows::fill(SampleTask& task, WorkerScratch& scratch) const {
    StageTimer timer{task};
    timer.begin();
    if (task.contents != nullptr) {
        const std::byte* const record = task.contents->data();
        if (task.contents->size() != data_->record_bytes)
            throw ArrayFileError{
                data_->part_of(task.index).path, data_->offset_of(task.index),
                fmt::format("{} bytes were read of a record of {}", task.contents->size(), data_->record_bytes)};
        constexpr std::uint64_t place = 0;
        task.bytes_read = task.contents->size();
        *task.target = data_->target_of(task.index, record);
        copy(*data_, floats_.get(), record, {&place, 1}, task.data.data());
        if (!floats_)
            data_->to_native(task.data.data(), task.data.size());
        return;
    }
    SampleRun run{.indices = {&task.index, 1},
                  .seed = task.seed,
                  .epoch = task.epoch,
                  .data = task.data.data(),
                  .targets = task.target};
    fill_run(run, scratch);
    task.bytes_read = run.bytes_read;
}

void ArrayRows::fill_run(SampleRun& run, WorkerScratch& scratch) const {
    const ArrayData& data = *data_;
    if (!data.records)
        return read_run(data, floats_.get(), run, static_cast<ArrayScratch&>(scratch));
    const std::byte* const records = data.records.get();
    std::int64_t* target = run.targets;
    if (data.targets.empty())
        std::fill_n(target, run.indices.size(), 0);
    else
        for (const std::uint64_t index : run.indices)
            *target++ = data.targets[static_cast<std::size_t>(index)];
    copy(data, floats_.get(), records, run.indices, run.data);
}

bool ArrayRows::fills_runs() const noexcept { return in_memory() || data_->sequential; }
const SampleReads* ArrayRows::reads() const noexcept { return fills_runs() ? nullptr : data_.get(); }

}   // namespace drawpoint
