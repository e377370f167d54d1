#include <drawpoint/pipeline/stages/array_rows.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>
#include <stdexcept>

#include <boost/test/unit_test.hpp>

#include <drawpoint/pipeline/rng.hpp>
#include <drawpoint/pipeline/storage/array_file.hpp>

#include "support/temporary_folder.hpp"
#include "pipeline/stages/counted_new.hpp"
#include "pipeline/stages/made_sample.hpp"

BOOST_AUTO_TEST_SUITE(array_rows)

using namespace drawpoint;
using test::MadeSample;

namespace {

constexpr ArrayOptions on_disk{.memory_limit = 0};

std::filesystem::path fixture(const std::string& name) { return DRAWPOINT_TEST_DIR "/pipeline/storage/arrays/" + name; }

struct Run {
    std::vector<std::byte> data;
    std::vector<std::int64_t> targets;
    SampleRun run;
};

Run run_of(const SampleSource& source, const std::vector<std::uint64_t>& indices) {
    Run made{std::vector<std::byte>(indices.size() * source.layout().bytes()),
             std::vector<std::int64_t>(indices.size(), -99),
             {}};
    const auto scratch = source.make_scratch();
    made.run = {.indices = indices, .data = made.data.data(), .targets = made.targets.data()};
    source.fill_run(made.run, *scratch);
    return made;
}

std::vector<std::uint64_t> all_of(const SampleSource& source) {
    std::vector<std::uint64_t> indices(source.size());
    std::iota(indices.begin(), indices.end(), 0u);
    return indices;
}

template <class T>
std::vector<T> values_of(const std::vector<std::byte>& bytes) {
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
}

float from_half(std::uint16_t half) {   // for finite numbers from 2^-14 on
    const int exponent = half >> 10 & 31;
    const float magnitude =
        exponent == 0 ? 0 : std::ldexp(1.0F + static_cast<float>(half & 1023) / 1024.0F, exponent - 15);
    return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

std::vector<double> numbers_of(ScalarType type, const std::vector<std::byte>& bytes) {
    const auto widen = [](const auto& values) { return std::vector<double>(values.begin(), values.end()); };
    switch (type) {
    case ScalarType::int8: return widen(values_of<std::int8_t>(bytes));
    case ScalarType::int16: return widen(values_of<std::int16_t>(bytes));
    case ScalarType::int32: return widen(values_of<std::int32_t>(bytes));
    case ScalarType::int64: return widen(values_of<std::int64_t>(bytes));
    case ScalarType::float32: return widen(values_of<float>(bytes));
    case ScalarType::float64: return values_of<double>(bytes);
    case ScalarType::float16: {
        std::vector<double> numbers;
        for (const std::uint16_t half : values_of<std::uint16_t>(bytes))
            numbers.push_back(from_half(half));
        return numbers;
    }
    default: return widen(values_of<std::uint8_t>(bytes));
    }
}

// Writes records of a label, 6 values and 1 unused byte, after a header of 5 bytes. Record i, counted through all
// files, has label i % 4 and values from i × 10 on.
std::vector<std::filesystem::path> write_records(const test::TemporaryFolder& folder) {
    std::vector<std::filesystem::path> paths;
    int record = 0;
    for (const int count : {3, 1, 5}) {
        std::vector<std::byte> file(5, std::byte{0xEE});
        for (int i = 0; i < count; ++i, ++record) {
            file.push_back(static_cast<std::byte>(record % 4));
            for (int k = 0; k < 6; ++k)
                file.push_back(static_cast<std::byte>(10 * record + k));
            file.push_back(std::byte{0xEE});
        }
        paths.push_back(folder.write(std::to_string(count) + ".bin", file));
    }
    return paths;
}

RawRecords records_of(const test::TemporaryFolder& folder) {
    return {.paths = write_records(folder),
            .layout = {ScalarType::uint8, 3, {3, 1, 2}},
            .header_bytes = 5,
            .record_bytes = 8,
            .data_at = 1,
            .label = RecordLabel{.at = 0, .type = ScalarType::uint8, .classes = 4}};
}

template <class Error>
std::string message_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return {};
}

}   // namespace

BOOST_AUTO_TEST_CASE(arrays_of_every_type_give_their_values_from_memory_and_from_disk) {
    struct Case {
        std::string file;
        ScalarType type;
    };
    const std::vector<Case> cases{
        {"b1.npy", ScalarType::boolean},   {"u1.npy", ScalarType::uint8},       {"i1.npy", ScalarType::int8},
        {"i2.npy", ScalarType::int16},     {"i4.npy", ScalarType::int32},       {"i8.npy", ScalarType::int64},
        {"f2.npy", ScalarType::float16},   {"f4.npy", ScalarType::float32},     {"f8.npy", ScalarType::float64},
        {"big_i2.npy", ScalarType::int16}, {"big_f4.npy", ScalarType::float32}, {"big_f8.npy", ScalarType::float64},
        {"u1-idx", ScalarType::uint8},     {"i1-idx", ScalarType::int8},        {"i2-idx", ScalarType::int16},
        {"i4-idx", ScalarType::int32},     {"f4-idx", ScalarType::float32},     {"f8-idx", ScalarType::float64}};
    for (const auto& [file, type] : cases)
        for (const ArrayOptions& options : {ArrayOptions{}, on_disk}) {
            BOOST_TEST_CONTEXT(file << (options.memory_limit ? " on disk" : "")) {
                const ArrayRows rows =
                    file.ends_with(".npy") ? npy(fixture(file), {}, options) : idx(fixture(file), {}, options);
                BOOST_TEST(rows.in_memory() == !options.memory_limit.has_value());
                BOOST_TEST(rows.size() == 3u);
                BOOST_TEST((rows.layout() == SampleLayout{type, 2, {2, 2}}));
                std::vector<double> expected;
                for (int i = 0; i < 12; ++i)
                    expected.push_back(type == ScalarType::boolean                                   ? i % 2
                                       : type == ScalarType::uint8                                   ? i
                                       : file.find('f') == 0 || file.find("_f") != std::string::npos ? (i - 3) / 2.0
                                                                                                     : i - 3);
                const Run made = run_of(rows, {0, 1, 2});
                BOOST_TEST(numbers_of(type, made.data) == expected, boost::test_tools::per_element());
                BOOST_TEST(made.targets == (std::vector<std::int64_t>{0, 0, 0}), boost::test_tools::per_element());
            }
        }
}

BOOST_AUTO_TEST_CASE(targets_come_from_a_second_file_and_a_line_is_rows_of_one_value) {
    const ArrayRows rows = npy(fixture("f4.npy"), fixture("targets.npy"));
    BOOST_TEST(run_of(rows, {2, 0}).targets == (std::vector<std::int64_t>{-2, 7}), boost::test_tools::per_element());
    const ArrayRows line = npy(fixture("line.npy"));
    BOOST_TEST((line.layout() == SampleLayout{ScalarType::int32, 0, {}}));
    BOOST_TEST(numbers_of(ScalarType::int32, run_of(line, {4, 3, 0}).data) == (std::vector<double>{1, 0, -3}),
               boost::test_tools::per_element());
    BOOST_TEST((run_of(npy(fixture("packed.npy.gz")), {1}).data == run_of(rows, {1}).data));
}

BOOST_AUTO_TEST_CASE(a_run_of_any_order_is_the_samples_one_by_one) {
    const test::TemporaryFolder folder;
    const RawRecords records = records_of(folder);
    for (const ArrayOptions& options : {ArrayOptions{}, on_disk})
        for (const bool floats : {false, true}) {
            ArrayRows rows = raw_records(records, options);
            if (floats)
                rows = rows.to_float({0.5F, 0.25F, 0}, {2});
            BOOST_TEST(rows.size() == 9u);
            const std::vector<std::uint64_t> indices{0, 1, 2, 3, 4, 5, 8, 7, 6, 3, 3, 4, 0, 8};
            const Run made = run_of(rows, indices);
            MadeSample one{rows}, ahead{rows};
            std::vector<std::byte> contents;
            for (std::size_t i = 0; i < indices.size(); ++i) {
                one.fill({.index = indices[i]});
                const std::size_t bytes = one.data.size();
                BOOST_TEST(std::equal(one.data.begin(), one.data.end(),
                                      made.data.begin() + static_cast<std::ptrdiff_t>(i * bytes)));
                BOOST_TEST(one.target == made.targets[i]);
                BOOST_TEST(one.target == static_cast<std::int64_t>(indices[i] % 4));
                BOOST_TEST(one.task.stage_count == 1u);
                BOOST_TEST(one.task.bytes_read == (rows.in_memory() ? 0u : 8u));
                const double first = 10.0 * static_cast<double>(indices[i]);
                if (floats)
                    BOOST_TEST(one.floats()[0] == (static_cast<float>(first) / 255.0F - 0.5F) / 2.0F);
                else
                    BOOST_TEST(numbers_of(ScalarType::uint8, one.data)[0] == first);
            }
            BOOST_TEST(made.run.bytes_read == (rows.in_memory() ? 0u : 8 * indices.size()));
        }
}

BOOST_AUTO_TEST_CASE(what_was_read_ahead_makes_the_same_sample) {
    const test::TemporaryFolder folder;
    BOOST_TEST(raw_records(records_of(folder)).reads() == nullptr);
    const ArrayRows whole = raw_records(records_of(folder), on_disk),
                    big = npy(fixture("big_f4.npy"), fixture("targets.npy"), on_disk);
    for (const ArrayRows& rows : {whole, whole.to_float({0.5F}, {0.5F}), big}) {
        const SampleReads* reads = rows.reads();
        BOOST_REQUIRE(reads != nullptr);
        const auto scratch = rows.make_scratch();
        for (std::uint64_t index = 0; index < rows.size(); ++index) {
            MadeSample expected{rows};
            expected.fill({.index = index});
            std::vector<std::byte> contents;
            reads->read(index, contents);
            const auto place = reads->location(index);
            BOOST_REQUIRE(place.has_value());
            std::vector<std::byte> there(place->bytes);
            DataFile{place->path}.read(place->offset, there);
            BOOST_TEST((there == contents));

            std::vector<std::byte> data(expected.data.size());
            std::int64_t target = -1;
            SampleTask task{.index = index, .data = data, .target = &target, .contents = &contents};
            rows.fill(task, *scratch);
            BOOST_TEST((data == expected.data));
            BOOST_TEST(target == expected.target);
            BOOST_TEST(task.bytes_read == contents.size());
            contents.pop_back();
            BOOST_CHECK_THROW(rows.fill(task, *scratch), ArrayFileError);
        }
    }
}

BOOST_AUTO_TEST_CASE(rows_are_read_ahead_one_by_one_unless_they_are_in_memory_or_drawn_in_order) {
    const test::TemporaryFolder folder;
    const auto opened = [&](const ArrayOptions& options) { return raw_records(records_of(folder), options); };
    const ArrayRows memory = opened({}), shuffled = opened(on_disk),
                    ordered = opened({.memory_limit = 0, .sequential = true});
    BOOST_TEST((memory.fills_runs() && memory.reads() == nullptr));
    BOOST_TEST((!shuffled.fills_runs() && shuffled.reads() != nullptr));
    BOOST_TEST((ordered.fills_runs() && ordered.reads() == nullptr));
    BOOST_TEST((run_of(ordered, {0, 1, 2, 3}).data == run_of(memory, {0, 1, 2, 3}).data));
    BOOST_TEST(memory.stages() == (std::vector<std::string>{"copy"}), boost::test_tools::per_element());
    BOOST_TEST(ordered.stages() == (std::vector<std::string>{"read"}), boost::test_tools::per_element());
    BOOST_TEST((opened({.memory_limit = 72}).in_memory() && !opened({.memory_limit = 71}).in_memory()));
}

BOOST_AUTO_TEST_CASE(floats_are_those_of_the_formula_to_the_last_bit_for_any_length) {
    const test::TemporaryFolder folder;
    std::vector<std::byte> file;
    for (int i = 0; i < 256; ++i)
        file.push_back(static_cast<std::byte>(i));
    const auto path = folder.write("levels", file);
    for (const std::int64_t length : {1, 2, 4, 8, 16, 32, 128, 256}) {
        const ArrayRows rows =
            raw_records({.paths = {path}, .layout = {ScalarType::uint8, 1, {length}}}).to_float({0.485F}, {0.229F});
        BOOST_TEST((rows.layout() == SampleLayout{ScalarType::float32, 1, {length}}));
        const auto values = values_of<float>(run_of(rows, all_of(rows)).data);
        BOOST_TEST_REQUIRE(values.size() == 256u);
        for (int level = 0; level < 256; ++level)
            BOOST_TEST(values[static_cast<std::size_t>(level)] ==
                       (static_cast<float>(level) / 255.0F - 0.485F) / 0.229F);
    }
}

BOOST_AUTO_TEST_CASE(mnist_is_found_with_its_labels_and_normalised) {
    for (const ArrayOptions& options : {ArrayOptions{}, on_disk}) {
        const ArrayRows test = mnist(fixture(""), false, options);
        BOOST_TEST(test.size() == 2u);
        BOOST_TEST((test.layout() == SampleLayout{ScalarType::uint8, 3, {1, 28, 28}}));
        const Run made = run_of(test, {1, 0});
        BOOST_TEST(made.targets == (std::vector<std::int64_t>{0, 5}), boost::test_tools::per_element());
        BOOST_TEST(numbers_of(ScalarType::uint8, made.data)[0] == 784 % 251);
    }
    const ArrayRows train = mnist(fixture(""), true).to_float({0.1307F}, {0.3081F});
    BOOST_TEST(train.size() == 4u);
    const Run made = run_of(train, {3, 2});
    BOOST_TEST(made.targets == (std::vector<std::int64_t>{9, 4}), boost::test_tools::per_element());
    BOOST_TEST(values_of<float>(made.data)[5] ==
               (static_cast<float>((3 * 784 + 5) % 251) / 255.0F - 0.1307F) / 0.3081F);
    BOOST_TEST(train.stages() == (std::vector<std::string>{"copy+to_float"}), boost::test_tools::per_element());
    const std::string packed = message_of<ArrayFileError>([] { (void)mnist(fixture(""), true, on_disk); });
    BOOST_TEST(packed.find("memory limit of 0") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(cifar_s_files_are_one_data_set_of_planes_and_labels) {
    const test::TemporaryFolder folder;
    for (int batch = 1; batch <= 5; ++batch) {
        std::vector<std::byte> file;
        for (int record = 0; record < 2; ++record) {
            file.push_back(static_cast<std::byte>((2 * batch + record) % 10));
            for (int i = 0; i < 3072; ++i)
                file.push_back(static_cast<std::byte>(60 * (i / 1024) + batch));
        }
        folder.write("cifar-10-batches-bin/data_batch_" + std::to_string(batch) + ".bin", file);
    }
    for (const ArrayOptions& options : {ArrayOptions{}, on_disk}) {
        const ArrayRows rows = cifar10(folder.path(), true, options);
        BOOST_TEST(rows.size() == 10u);
        BOOST_TEST((rows.layout() == SampleLayout{ScalarType::uint8, 3, {3, 32, 32}}));
        const Run made = run_of(rows, {9, 0, 1, 2, 3});
        BOOST_TEST(made.targets == (std::vector<std::int64_t>{1, 2, 3, 4, 5}), boost::test_tools::per_element());
        const auto values = numbers_of(ScalarType::uint8, made.data);
        BOOST_TEST((values[0] == 5 && values[1024] == 65 && values[2048] == 125 && values[3072] == 1));
        const Run floats = run_of(rows | Normalize::imagenet(), {9});
        BOOST_TEST(values_of<float>(floats.data)[1024] == (65.0F / 255.0F - 0.456F) / 0.224F);
        BOOST_TEST(values_of<float>(floats.data)[3071] == (125.0F / 255.0F - 0.406F) / 0.225F);
    }
    std::vector<std::byte> record(3074, std::byte{9});
    record[0] = std::byte{19};
    record[1] = std::byte{99};
    folder.write("train.bin", record);
    BOOST_TEST(run_of(cifar100(folder.path()), {0}).targets[0] == 99);
    BOOST_TEST(run_of(cifar100(folder.path(), true, Cifar100Labels::coarse), {0}).targets[0] == 19);
    BOOST_TEST(numbers_of(ScalarType::uint8, run_of(cifar100(folder.path()), {0}).data)[0] == 9);
}

BOOST_AUTO_TEST_CASE(a_label_among_the_values_is_the_same_from_memory_and_from_disk) {
    const test::TemporaryFolder folder;
    std::vector<std::byte> file;
    for (const int value : {5, 6, 7, 8})
        for (int byte = 0; byte < 4; ++byte)
            file.push_back(byte == 3 ? static_cast<std::byte>(value) : std::byte{0});
    const auto path = folder.write("x", file);
    for (const ArrayOptions& options : {ArrayOptions{}, on_disk}) {
        const Run numbers = run_of(raw_records({.paths = {path},
                                                .layout = {ScalarType::int32, 1, {2}},
                                                .label = RecordLabel{.at = 0, .type = ScalarType::int32},
                                                .big_endian = true},
                                               options),
                                   {0, 1});
        BOOST_TEST(numbers.targets == (std::vector<std::int64_t>{5, 7}), boost::test_tools::per_element());
        BOOST_TEST(numbers_of(ScalarType::int32, numbers.data) == (std::vector<double>{5, 6, 7, 8}),
                   boost::test_tools::per_element());
        const Run flags = run_of(
            raw_records({.paths = {path}, .layout = {ScalarType::boolean, 1, {8}}, .label = RecordLabel{.at = 7}},
                        options),
            {1, 0});
        BOOST_TEST(flags.targets == (std::vector<std::int64_t>{8, 6}), boost::test_tools::per_element());
        BOOST_TEST((flags.data[7] == std::byte{1}));
    }
}

BOOST_AUTO_TEST_CASE(a_label_that_is_no_class_names_file_and_byte) {
    const test::TemporaryFolder folder;
    RawRecords records = records_of(folder);
    records.label->classes = 3;
    const std::string first = (folder.path() / "3.bin").string() + ": byte ",
                      second = (folder.path() / "1.bin").string() + ": byte 5: ";
    const std::string refused = message_of<ArrayFileError>([&] { (void)raw_records(records); });
    BOOST_TEST(refused == second + "label 3 of record 3 is none of 0 to 2");
    const ArrayRows rows = raw_records(records, on_disk);
    std::vector<std::byte> data(4 * 6);
    std::vector<std::int64_t> targets(4);
    const std::vector<std::uint64_t> indices{1, 2, 3, 4};
    SampleRun run{.indices = indices, .data = data.data(), .targets = targets.data()};
    const auto scratch = rows.make_scratch();
    BOOST_TEST(message_of<ArrayFileError>([&] { rows.fill_run(run, *scratch); }) == refused);
    const std::vector<std::uint64_t> neighbours{4, 5, 6, 7};   // one piece; its last label is 3
    run.indices = neighbours;
    BOOST_CHECK_THROW(rows.fill_run(run, *scratch), ArrayFileError);
}

BOOST_AUTO_TEST_CASE(a_file_that_shrinks_fails_the_sample_that_is_missing) {
    const test::TemporaryFolder folder;
    const ArrayRows rows = raw_records(records_of(folder), on_disk);
    const auto path = folder.path() / "5.bin";
    std::filesystem::resize_file(path, 5 + 8 * 2);
    BOOST_TEST(message_of<ArrayFileError>([&] { (void)run_of(rows, {0, 6}); }) ==
               path.string() + ": byte 21: the file ends here; it has become shorter");
    BOOST_TEST((run_of(rows, {4, 5}).targets == std::vector<std::int64_t>{0, 1}));
    BOOST_TEST(rows.path(6) == path.string() + ", byte 21");
}

BOOST_AUTO_TEST_CASE(labels_of_several_bytes_are_read_in_their_order) {
    const test::TemporaryFolder folder;
    std::vector<std::byte> file;
    for (const int byte : {0xFF, 0xFE, 0x00, 0x05, 0x00, 0x01, 0x3F, 0x80})   // -2 and 5, 1 and 16256
        file.push_back(static_cast<std::byte>(byte));
    RawRecords records{.paths = {folder.write("x", file)},
                       .layout = {ScalarType::int16, 0, {}},
                       .record_bytes = 4,
                       .data_at = 2,
                       .label = RecordLabel{.at = 0, .type = ScalarType::int16},
                       .big_endian = true};
    for (const ArrayOptions& options : {ArrayOptions{}, on_disk}) {
        const Run made = run_of(raw_records(records, options), {0, 1});
        BOOST_TEST(made.targets == (std::vector<std::int64_t>{-2, 1}), boost::test_tools::per_element());
        BOOST_TEST(numbers_of(ScalarType::int16, made.data) == (std::vector<double>{5, 16256}),
                   boost::test_tools::per_element());
    }
    records.big_endian = false;
    BOOST_TEST(run_of(raw_records(records), {0}).targets[0] == static_cast<std::int16_t>(0xFEFF));
}

BOOST_AUTO_TEST_CASE(files_that_do_not_fit_their_records_are_refused_where_they_end) {
    const test::TemporaryFolder folder;
    RawRecords records = records_of(folder);
    const auto refused = [&](std::size_t bytes) {
        records.paths = {folder.write("x", std::vector<std::byte>(bytes))};
        return message_of<ArrayFileError>([&] { (void)raw_records(records); });
    };
    const std::string x = (folder.path() / "x").string() + ": byte ";
    BOOST_TEST(refused(5 + 16).empty());
    BOOST_TEST(refused(5 + 19) == x + "21: the last record begins here and has 3 of 8 bytes");
    BOOST_TEST(refused(5) == x + "5: the file ends here, and its first record is to begin at byte 5");
    BOOST_TEST(refused(0) == x + "0: the file ends here, and its first record is to begin at byte 5");
}

BOOST_AUTO_TEST_CASE(arguments_that_do_not_fit_are_refused_by_name) {
    const test::TemporaryFolder folder;
    const auto refused = [&](const std::function<void(RawRecords&)>& change) {
        RawRecords records = records_of(folder);
        change(records);
        return message_of<std::invalid_argument>([&] { (void)raw_records(records); });
    };
    const auto begins = [](const std::string& text, const std::string& begin) {
        return text.starts_with("raw_records: " + begin);
    };
    BOOST_TEST(begins(refused([](auto& r) { r.paths.clear(); }), "paths"));
    BOOST_TEST(begins(refused([](auto& r) { r.layout.rank = 5; }), "layout.rank"));
    BOOST_TEST(begins(refused([](auto& r) { r.layout.shape[0] = 0; }), "layout.shape"));
    BOOST_TEST(begins(refused([](auto& r) { r.layout.shape[0] = std::int64_t{1} << 61, r.layout.shape[1] = 2; }),
                      "layout.shape"));
    BOOST_TEST(begins(refused([](auto& r) { r.data_at = 3; }), "data_at"));
    BOOST_TEST(begins(refused([](auto& r) { r.data_at = ~std::uint64_t{0}; }), "data_at"));
    BOOST_TEST(begins(refused([](auto& r) { r.label->at = 8; }), "label.at"));
    BOOST_TEST(begins(refused([](auto& r) { r.label->type = ScalarType::float32; }), "label.type"));
    BOOST_TEST(begins(refused([](auto& r) { r.label->classes = -1; }), "label.classes"));

    const ArrayRows rows = raw_records(records_of(folder));
    for (const auto& [mean, deviation] :
         {std::pair<std::vector<float>, std::vector<float>>{{1, 2}, {}}, {{}, {1, 1, 1, 1}}, {{}, {0}}, {{}, {NAN}}})
        BOOST_CHECK_THROW((void)rows.to_float(mean, deviation), std::invalid_argument);
    BOOST_CHECK_THROW((void)rows.to_float().to_float(), std::invalid_argument);
    BOOST_CHECK_THROW((void)npy(fixture("f4.npy")).to_float(), std::invalid_argument);
    const auto array_refusal = [](const std::function<void()>& action) { return message_of<ArrayFileError>(action); };
    BOOST_TEST(array_refusal([] { (void)npy(fixture("f4.npy"), fixture("line.npy")); }).find("3 targets are needed") !=
               std::string::npos);
    BOOST_TEST(array_refusal([] { (void)npy(fixture("f4.npy"), fixture("f4.npy")); }).find("whole numbers") !=
               std::string::npos);
    BOOST_TEST(array_refusal([] { (void)npy(fixture("refused_dimensions.npy")); }).find("at most 4") !=
               std::string::npos);
}

BOOST_AUTO_TEST_CASE(runs_allocate_nothing) {
    const test::TemporaryFolder folder;
    for (const ArrayOptions& options : {ArrayOptions{}, on_disk}) {
        const ArrayRows rows = raw_records(records_of(folder), options);
        for (const ArrayRows& source : {rows, rows.to_float({0.5F}, {0.5F}), npy(fixture("big_f8.npy"), {}, options)}) {
            const std::vector<std::uint64_t> indices{0, 1, 2, 2, 1};
            std::vector<std::byte> data(indices.size() * source.layout().bytes());
            std::vector<std::int64_t> targets(indices.size());
            const auto scratch = source.make_scratch();
            const std::size_t before = calls_of_operator_new();
            for (int round = 0; round < 10; ++round) {
                SampleRun run{.indices = indices, .data = data.data(), .targets = targets.data()};
                source.fill_run(run, *scratch);
                SampleTask task{
                    .index = 1, .data = std::span{data}.first(source.layout().bytes()), .target = targets.data()};
                source.fill(task, *scratch);
            }
            BOOST_TEST(calls_of_operator_new() == before);
        }
    }
}

BOOST_AUTO_TEST_SUITE_END()
