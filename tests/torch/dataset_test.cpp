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

/// Example i has the values i, i + 1, i + 2 and the label i.
class Counting : public torch::data::datasets::Dataset<Counting> {
public:
    explicit Counting(std::size_t size = 10) : size_{size} {}
    torch::data::Example<> get(std::size_t index) override {
        const auto i = static_cast<std::int64_t>(index);
        return {torch::arange(i, i + 3, torch::kFloat), torch::tensor(i)};
    }
    std::optional<std::size_t> size() const override { return size_; }

private:
    std::size_t size_;
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
    BOOST_TEST(refusal(TensorDataset{torch::ones({4, 2}, torch::kComplexFloat)}) ==
               "from_tensors: examples of type ComplexFloat cannot be samples");
    BOOST_TEST(refusal(TensorDataset{torch::ones({4, 1, 1, 1, 1, 1})}) ==
               "from_tensors: an example has at most 4 dimensions, none empty, got shape [1, 1, 1, 1, 1]");
    BOOST_TEST(refusal(TensorDataset{torch::ones({0, 1})}) == "from_tensors: the data must have rows");
    BOOST_TEST(refusal(Counting{0}) == "from_torch: the dataset must have a known size of at least 1");
    const auto of_tensors = [](const torch::Tensor& data, const torch::Tensor& targets) -> std::string {
        try {
            (void)from_tensors(data, targets);
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "taken";
    };
    BOOST_TEST(of_tensors(torch::ones({4, 2}), torch::arange(3)) ==
               "from_tensors: targets must be 4 whole numbers, got Long of 3 values");
    BOOST_TEST(of_tensors(torch::ones({4, 2}), torch::ones(4)) ==
               "from_tensors: targets must be 4 whole numbers, got Float of 4 values");
    BOOST_TEST(of_tensors(torch::ones({}), {}) == "from_tensors: the data must have rows");
    BOOST_TEST(of_tensors(torch::ones({4, 2}).to_sparse(), {}).starts_with("from_tensors: tensors must be dense"));
}

BOOST_AUTO_TEST_CASE(ready_tensors_are_rows_of_any_type_and_come_in_runs) {
    for (const torch::ScalarType type : {torch::kByte, torch::kChar, torch::kShort, torch::kInt, torch::kLong,
                                         torch::kHalf, torch::kBFloat16, torch::kFloat, torch::kDouble, torch::kBool}) {
        const torch::Tensor data = torch::arange(24).reshape({3, 4, 2}).permute({1, 0, 2}).to(type);   // not contiguous
        const auto source = from_tensors(data, torch::arange(10, 14, torch::kInt));
        BOOST_TEST(source.fills_runs());
        BOOST_TEST((source.layout().rank == 2 && source.layout().shape[0] == 3 && source.layout().shape[1] == 2));
        test::Drawn drawn{source, 4};
        Batch batch = drawn.next();
        BOOST_TEST((data_of(batch).scalar_type() == type));
        BOOST_TEST(torch::equal(data_of(batch), data));
        BOOST_TEST(torch::equal(targets_of(batch), torch::arange(10, 14)));
    }
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
