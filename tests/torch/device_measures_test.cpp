// What `./run bench device` measures, on the fake accelerator, whose times are known.
#include "bench/device/stage_measures.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <boost/test/unit_test.hpp>
#include <torch/nn/module.h>

#include <drawpoint/loop/torch/model.hpp>

#include "bench/device/loader_measures.hpp"
#include "bench/photos.hpp"
#include "torch/fake_accelerator/fake_accelerator.hpp"

namespace drawpoint::bench {
namespace {

namespace fake = fake_accelerator;

double figure(const std::vector<DeviceFigure>& figures, std::string_view name) {
    const auto found = std::ranges::find(figures, name, &DeviceFigure::name);
    BOOST_REQUIRE_MESSAGE(found != figures.end(), name);
    return found->median;
}

/// Its weights are made on the device: LibTorch cannot move those of its modules to one that it does not know.
struct Line : torch::nn::Module {
    Line(std::size_t classes, const std::string& device)
        : weight{register_parameter(
              "weight", at::zeros({static_cast<std::int64_t>(classes), 3 * 32 * 32}).to(c10::Device{device}))} {}
    at::Tensor forward(const at::Tensor& images) { return at::linear(images.flatten(1), weight); }
    at::Tensor weight;
};
Model line(std::size_t classes, const std::string& device) { return model_of(std::make_shared<Line>(classes, device)); }

BOOST_AUTO_TEST_SUITE(device_measures)

BOOST_AUTO_TEST_CASE(known_times_are_measured) {
    fake::reset({.call_ns = 1000, .query_ns = 500, .copy_ns = 4'000'000});
    std::size_t told = 0;
    const auto figures =
        measure_device(fake::device(), {.repeats = 100,
                                        .steps = 20,
                                        .largest_mb = 40,
                                        .now_ns = fake::now_ns,
                                        .work = [](double ms) { fake::kernel(static_cast<std::int64_t>(ms * 1e6)); },
                                        .tell = [&told](const DeviceFigure&) { ++told; }});
    fake::synchronize();
    BOOST_TEST(told == figures.size());
    const auto within = boost::test_tools::tolerance(0.01);
    for (const char* how : {", stream idle", ", stream at work"}) {
        BOOST_TEST(figure(figures, std::string{"record of a timed event"} + how) == 1.0, within);
        BOOST_TEST(figure(figures, std::string{"wait of a stream for an event"} + how) == 1.0, within);
    }
    BOOST_TEST(figure(figures, "query of an event that is done") == 0.5, within);
    BOOST_TEST(figure(figures, "query of an event that is not done") == 0.5, within);
    BOOST_TEST(figure(figures, "copy of 16 MB from pinned memory") == 4.0, within);   // 4 ms, however much it is
    BOOST_TEST(figure(figures, "38.5 MB a step of 5 ms, one stream") == 9.0, within);
    BOOST_TEST(figure(figures, "38.5 MB a step of 5 ms, 1 buffer") == 9.0, within);
    BOOST_TEST(figure(figures, "38.5 MB a step of 5 ms, 2 buffers") == 5.2, within);
    BOOST_TEST(figure(figures, "9.6 MB a step of 5 ms, 3 buffers") == 5.2, within);
    BOOST_TEST(figure(figures, "9.6 MB a step of 5 ms, 3 buffers: the stage on the host") < 25);
    BOOST_TEST(figure(figures, "20 ms of work alone") == 20.0, within);
    BOOST_TEST(figure(figures, "a buffer of 64 TiB is refused by DeviceError, and the device goes on") == 1.0);
}

BOOST_AUTO_TEST_CASE(the_loader_and_a_model_are_measured_on_it) {
    fake::reset({.query_ns = 1000, .copy_ns = 10'000});
    const TemporaryPhotos photos{64, {64, 48}};
    const auto figures = measure_device_loader(
        "",
        {.photos = photos.folder(), .rounds = 1, .batch_size = 8, .train_steps = 3, .image_size = 32, .model = line},
        {});
    fake::synchronize();
    for (const char* name :
         {"loader alone, uint8", "loader to the device, uint8, normalised there", "loader to the device, float32",
          "to the device over alone, uint8", "model trained on the loader's batches",
          "model, the loader's batches over one that stays"})
        BOOST_TEST(figure(figures, name) > 0, name);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
}   // namespace drawpoint::bench
