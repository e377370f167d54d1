#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <drawpoint/pipeline/loader/core/sample_source.hpp>
#include <drawpoint/pipeline/storage/file_reader.hpp>

#include "support/temporary_folder.hpp"
#include "pipeline/loader/numbered_source.hpp"

namespace drawpoint::test {

/// Samples of four 64-bit numbers that are made from stored bytes: in memory, or in a file each.
class StoredSource final : public SampleSource, public SampleReads {
public:
    enum class In : std::uint8_t { memory, files, one_file };

    explicit StoredSource(std::size_t n, In where = In::memory) : n_{n}, where_{where} {
        std::vector<std::byte> all;
        for (std::uint64_t index = 0; index < n && where != In::memory; ++index) {
            std::vector<std::byte> contents;
            write(index, contents);
            if (where == In::one_file)
                all.insert(all.end(), contents.begin(), contents.end());
            else
                paths_.push_back(folder_.write(std::to_string(index), contents).string());
        }
        if (where == In::one_file)
            paths_.push_back(folder_.write("all", all).string());
    }

    std::function<void(std::uint64_t index)> before_read = [](std::uint64_t) {};
    std::function<void(std::uint64_t index)> before_location = [](std::uint64_t) {};
    mutable std::atomic<std::uint64_t> reads_begun{0}, most_at_a_time{0}, made_from_contents{0};

    static std::size_t bytes_of(std::uint64_t index) noexcept { return 8 * (1 + index % 7 * 100); }
    static void write(std::uint64_t index, std::vector<std::byte>& contents) {
        contents.resize(bytes_of(index));
        for (std::size_t at = 0; at < contents.size(); at += 8) {
            const std::uint64_t value = index * 1000 + at;
            std::memcpy(contents.data() + at, &value, 8);
        }
    }
    static bool holds(std::uint64_t index, const std::vector<std::byte>& contents) {
        bool same = contents.size() == bytes_of(index);
        for (std::size_t at = 0; same && at < contents.size(); at += 8) {
            std::uint64_t value = 0;
            std::memcpy(&value, contents.data() + at, 8);
            same = value == index * 1000 + at;
        }
        return same;
    }
    [[nodiscard]] std::string file(std::uint64_t index) const {
        return where_ == In::memory ? "memory" : paths_[where_ == In::one_file ? 0 : index];
    }

    void read(std::uint64_t index, std::vector<std::byte>& contents) const override {
        reads_begun.fetch_add(1, std::memory_order_relaxed);
        struct Counted {
            std::atomic<std::uint64_t>& now;
            ~Counted() { now.fetch_sub(1); }
        } counted{now_};
        const std::uint64_t now = now_.fetch_add(1) + 1;
        std::uint64_t most = most_at_a_time.load();
        while (most < now && !most_at_a_time.compare_exchange_weak(most, now)) {
        }
        before_read(index);
        if (where_ == In::files)
            read_file(file(index).c_str(), contents);
        else
            write(index, contents);
    }
    std::optional<FileRange> location(std::uint64_t index) const noexcept override {
        before_location(index);
        if (where_ == In::files)
            return FileRange{.path = paths_[index].c_str()};
        if (where_ == In::one_file) {
            std::uint64_t offset = 0;
            for (std::uint64_t before = 0; before < index; ++before)
                offset += bytes_of(before);
            return FileRange{.path = paths_[0].c_str(), .offset = offset, .bytes = bytes_of(index)};
        }
        return std::nullopt;
    }

    std::size_t size() const noexcept override { return n_; }
    SampleLayout layout() const noexcept override { return {.type = ScalarType::int64, .rank = 1, .shape = {4}}; }
    std::vector<std::string> stages() const override { return {"read", "write"}; }
    std::string path(std::uint64_t index) const override { return "stored/" + std::to_string(index); }
    std::unique_ptr<WorkerScratch> make_scratch() const override { return std::make_unique<Scratch>(); }
    const SampleReads* reads() const noexcept override { return this; }
    void fill(SampleTask& task, WorkerScratch& scratch) const override {
        std::int64_t now = task.clock ? task.clock->now_ns() : 0;
        task.stages[0] = {now, 0};
        task.stage_count = 1;
        const std::vector<std::byte>* contents = task.contents;
        if (contents == nullptr) {
            std::vector<std::byte>& own = static_cast<Scratch&>(scratch).contents;
            read(task.index, own);
            contents = &own;
        } else {
            made_from_contents.fetch_add(1, std::memory_order_relaxed);
        }
        if (!holds(task.index, *contents))
            throw std::logic_error{"bytes of another sample than " + std::to_string(task.index)};
        const std::int64_t read_until = task.clock ? task.clock->now_ns() : 0;
        task.stages[0].ns = read_until - now;
        task.stages[1] = {read_until, 0};
        task.stage_count = 2;
        for (std::size_t at = 0; at < 4; ++at) {
            const std::int64_t value = NumberedSource::word(task.seed, task.epoch, task.index, at);
            std::memcpy(task.data.data() + at * 8, &value, 8);
        }
        *task.target = NumberedSource::target(task.index);
        task.bytes_read = contents->size();
        if (task.clock)
            task.stages[1].ns = task.clock->now_ns() - read_until;
    }

private:
    struct Scratch final : WorkerScratch {
        std::vector<std::byte> contents;
    };

    std::size_t n_;
    In where_;
    TemporaryFolder folder_;
    std::vector<std::string> paths_;
    mutable std::atomic<std::uint64_t> now_{0};
};

}   // namespace drawpoint::test
