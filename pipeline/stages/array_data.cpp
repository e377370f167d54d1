#include "pipeline/stages/array_data.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

#include <fmt/format.h>
#include <sys/mman.h>

namespace drawpoint {

std::int64_t whole_number(const std::byte* from, std::size_t bytes, bool big_endian, bool is_signed) noexcept {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
        value |= std::to_integer<std::uint64_t>(from[i]) << 8 * (big_endian ? bytes - 1 - i : i);
    if (is_signed && bytes < 8 && value >> (8 * bytes - 1) != 0)
        value |= ~std::uint64_t{0} << 8 * bytes;
    return static_cast<std::int64_t>(value);
}

const ArrayPart& ArrayData::part_of(std::uint64_t index) const noexcept {
    const auto after = std::upper_bound(parts.begin(), parts.end(), index,
                                        [](std::uint64_t i, const ArrayPart& part) { return i < part.first; });
    return *(after - 1);
}

std::uint64_t ArrayData::offset_of(std::uint64_t index) const noexcept {
    const ArrayPart& part = part_of(index);
    return part.offset + (index - part.first) * record_bytes;
}

std::int64_t ArrayData::target_of(std::uint64_t index, const std::byte* record) const {
    if (!label)
        return targets.empty() ? 0 : targets[static_cast<std::size_t>(index)];
    const std::int64_t target =
        whole_number(record + label->at, size_of(label->type), big_endian, label->type != ScalarType::uint8);
    if (label->classes > 0 && (target < 0 || target >= label->classes))
        throw ArrayFileError{
            part_of(index).path, offset_of(index) + label->at,
            fmt::format("label {} of record {} is none of 0 to {}", target, index, label->classes - 1)};
    return target;
}

void ArrayData::to_native(std::byte* values, std::size_t bytes) const noexcept {
    if (layout.type == ScalarType::boolean)
        for (std::size_t i = 0; i < bytes; ++i)
            values[i] = static_cast<std::byte>(values[i] != std::byte{0});
    const std::size_t width = size_of(layout.type);
    if (width > 1 && big_endian != (std::endian::native == std::endian::big))
        for (std::size_t i = 0; i < bytes; i += width)
            std::reverse(values + i, values + i + width);
}

void ArrayData::read(std::uint64_t index, std::vector<std::byte>& contents) const {
    contents.resize(record_bytes);
    part_of(index).file->read(offset_of(index), contents);
}

std::optional<FileRange> ArrayData::location(std::uint64_t index) const noexcept {
    const ArrayPart& part = part_of(index);
    return FileRange{part.path.c_str(), part.file->descriptor(), offset_of(index), record_bytes};
}

void ArrayData::take_memory() {
    constexpr std::size_t page = std::size_t{2} << 20;
    const std::size_t bytes = size * record_bytes, whole = (bytes + page - 1) / page * page;
    auto* const memory = static_cast<std::byte*>(bytes < page ? std::malloc(bytes) : std::aligned_alloc(page, whole));
    if (memory == nullptr)
        throw std::bad_alloc{};
    records = {memory, [](std::byte* begin) { std::free(begin); }};
    if (bytes >= page)
        ::madvise(memory, whole, MADV_HUGEPAGE);   // refused by some kernels: small pages do as well
}

void ArrayData::finish_memory() {
    if (label)
        targets.reserve(size);
    for (std::size_t index = 0; index < size; ++index) {
        std::byte* const record = records.get() + index * record_bytes;
        if (label)
            targets.push_back(target_of(index, record));
        to_native(record + data_at, layout.bytes());   // the label may lie among the values
    }
    label.reset();
}

}   // namespace drawpoint
