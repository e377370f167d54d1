#include <drawpoint/pipeline/torch/dataset.hpp>

#include <boost/test/unit_test.hpp>
#include <torch/data/datasets.h>
#include <torch/data/example.h>
#include <torch/data/transforms.h>
#include <torch/types.h>

#include <drawpoint/pipeline/torch/tensors.hpp>

#include "torch/drawn.hpp"

BOOST_AUTO_TEST_SUITE(dataset)

using namespace drawpoint;

namespace {

/// Example i is i, i + 1, i + 2, with label i.
class Counting : public torch::data::datasets::Dataset<Counting> {
public:
    torch::data::Example<> get(std::size_t index) override {
        const auto i = static_cast<std::int64_t>(index);
        return {torch::arange(i, i + 3, torch::kFloat), torch::tensor(i)};
    }
    std::optional<std::size_t> size() const override { return 10; }
};

template <class Dataset>
std::string refusal(Dataset examples) {
    try {
        (void)from_torch(std::move(examples));
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "taken";
}

}   // namespace

BOOST_AUTO_TEST_CASE(examples_become_samples_and_targets) {
    const auto source = from_torch(Counting{});
    BOOST_TEST((source.layout() == SampleLayout{ScalarType::float32, 1, {3}}));
    test::Drawn drawn{source, 10};
    Batch batch = drawn.next();
    BOOST_TEST(torch::equal(data_of(batch)[7], torch::tensor({7.0F, 8.0F, 9.0F})));
    BOOST_TEST(torch::equal(targets_of(batch), torch::arange(10)));
}

BOOST_AUTO_TEST_CASE(a_mapped_dataset_is_one_too) {
    const auto source = from_torch(Counting{}.map(torch::data::transforms::Normalize<>(1.0, 2.0)));
    test::Drawn drawn{source, 10};
    Batch batch = drawn.next();
    BOOST_TEST(torch::equal(data_of(batch)[5].flatten(), torch::tensor({2.0F, 2.5F, 3.0F})));
}

BOOST_AUTO_TEST_CASE(a_dataset_without_targets_has_target_0) {
    const auto source = from_torch(torch::data::datasets::TensorDataset{torch::ones({4, 2, 2}, torch::kByte)});
    BOOST_TEST((source.layout() == SampleLayout{ScalarType::uint8, 2, {2, 2}}));
    test::Drawn drawn{source, 4};
    Batch batch = drawn.next();
    BOOST_TEST(data_of(batch).sum().item<int>() == 16);
    BOOST_TEST(targets_of(batch).sum().item<int>() == 0);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_used_is_refused_with_the_reason) {
    using torch::data::datasets::TensorDataset;
    BOOST_TEST(refusal(TensorDataset{torch::ones({4, 2}, torch::kDouble)}) ==
               "from_torch: examples must be float32, uint8 or int64, got Double");
    BOOST_TEST(refusal(TensorDataset{torch::ones({4, 1, 1, 1, 1, 1})}) ==
               "from_torch: an example has 1 to 4 dimensions, none empty, got shape [1, 1, 1, 1, 1]");
    BOOST_TEST(refusal(TensorDataset{torch::ones({0, 1})}) ==
               "from_torch: the dataset must have a known size of at least 1");
}

BOOST_AUTO_TEST_CASE(an_example_of_another_shape_fails_its_batch) {
    class Growing : public torch::data::datasets::Dataset<Growing> {
    public:
        torch::data::Example<> get(std::size_t index) override {
            return {torch::ones({static_cast<std::int64_t>(index + 1)}), torch::tensor(0)};
        }
        std::optional<std::size_t> size() const override { return 2; }
    };
    const auto source = from_torch(Growing{});
    test::Drawn drawn{source, 1};
    (void)drawn.next();
    BOOST_CHECK_EXCEPTION((void)drawn.next(), SampleError, [](const SampleError& error) {
        return error.index() == 1 && error.stage() == "get" &&
               std::string{error.what()}.find("shape [2] of Float, but the first example's was [1]") !=
                   std::string::npos;
    });
}

BOOST_AUTO_TEST_SUITE_END()
