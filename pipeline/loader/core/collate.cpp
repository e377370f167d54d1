#include <drawpoint/pipeline/loader/core/collate.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

namespace drawpoint {

BatchPart::BatchPart(BatchPart&& other) noexcept
    : name_{std::move(other.name_)},
      type_{other.type_},
      shape_{other.shape_},
      rank_{other.rank_},
      bytes_{other.bytes_},
      memory_{std::exchange(other.memory_, nullptr)} {}

BatchPart::~BatchPart() {
    if (memory_)
        memory_->release();
}

std::span<std::byte> BatchPart::data() const noexcept { return {memory_->data(), bytes_}; }

std::span<std::byte> CollatedBatch::add(std::string_view name, ScalarType type, std::span<const std::int64_t> shape) {
    const auto refuse = [&name](const std::string& why) {
        throw std::invalid_argument{"collate: array '" + std::string{name} + "': " + why};
    };
    if (name.empty() || find(name) != nullptr)
        refuse(name.empty() ? "its name must not be empty" : "it is there already");
    if (shape.empty() || shape.size() > std::tuple_size_v<decltype(BatchPart::shape_)>)
        refuse("it must have 1 to 5 sizes, got " + std::to_string(shape.size()));
    constexpr std::uint64_t most = std::uint64_t{1} << 46;
    std::uint64_t bytes = size_of(type);
    for (const std::int64_t size : shape) {
        if (size < 0 || static_cast<std::uint64_t>(size) > most / std::max<std::uint64_t>(bytes, 1))
            refuse("its sizes must be at least 0 and fit into memory, got " + std::to_string(size));
        bytes *= static_cast<std::uint64_t>(size);
    }
    if (used_ == parts_.size())
        parts_.emplace_back();
    BatchPart& part = parts_[used_];
    if (part.memory_ == nullptr || part.memory_->bytes() < bytes) {
        if (part.memory_)
            std::exchange(part.memory_, nullptr)->release();
        // Powers of two up to a huge page, so that sizes that vary a little soon need no allocation.
        const std::uint64_t huge_page = std::uint64_t{2} << 20;
        part.memory_ =
            SlotMemory::allocate(bytes < huge_page ? std::bit_ceil(std::max<std::uint64_t>(bytes, 256)) : bytes, 0);
    }
    part.name_ = name;
    part.type_ = type;
    part.rank_ = shape.size();
    std::ranges::copy(shape, part.shape_.begin());
    part.bytes_ = static_cast<std::size_t>(bytes);
    ++used_;
    return part.data();
}

const BatchPart* CollatedBatch::find(std::string_view name) const noexcept {
    const auto found = std::ranges::find(parts(), name, &BatchPart::name);
    return found == parts().end() ? nullptr : &*found;
}

std::uint64_t CollatedBatch::bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const BatchPart& part : parts_)
        sum += part.memory_ ? part.memory_->bytes() : 0;
    return sum;
}

void CollatedBatch::release_memory() noexcept {
    used_ = 0;
    for (BatchPart& part : parts_)
        if (part.memory_)
            std::exchange(part.memory_, nullptr)->release();
}

std::size_t CollatedBatch::release_shared() noexcept {
    used_ = 0;
    std::size_t released = 0;
    for (BatchPart& part : parts_)
        if (part.memory_ && part.memory_->is_shared()) {
            std::exchange(part.memory_, nullptr)->release();
            ++released;
        }
    return released;
}

FunctionCollate::FunctionCollate(std::string name, Function function)
    : name_{std::move(name)}, function_{std::move(function)} {
    if (name_.empty())
        throw std::invalid_argument{"collate: the name must not be empty"};
    if (!function_)
        throw std::invalid_argument{"collate: " + name_ + " has no function"};
}

}   // namespace drawpoint
