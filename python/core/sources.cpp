#include "python/core/sources.hpp"

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <drawpoint/pipeline/stages/array_rows.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/stages/tensor_rows.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>
#include <drawpoint/pipeline/storage/tar_shards.hpp>

namespace drawpoint::python {
namespace nb = nanobind;
namespace {

/// A source of images that further stages can follow.
struct ImageSource : Source {
    explicit ImageSource(ImageRecipe made)
        : Source{std::make_shared<const ImageRecipe>(made)}, recipe{std::move(made)} {}
    ImageRecipe recipe;
};
struct ArraySource : Source {
    explicit ArraySource(ArrayRows made) : Source{std::make_shared<const ArrayRows>(made)}, rows{std::move(made)} {}
    ArrayRows rows;
};

ScalarType type_of(const nb::dlpack::dtype& type) {
    const auto is = [&](nb::dlpack::dtype_code code, int bits) {
        return type.code == static_cast<std::uint8_t>(code) && type.bits == bits && type.lanes == 1;
    };
    using Code = nb::dlpack::dtype_code;
    constexpr std::array types{std::pair{std::pair{Code::UInt, 8}, ScalarType::uint8},
                               std::pair{std::pair{Code::Int, 8}, ScalarType::int8},
                               std::pair{std::pair{Code::Int, 16}, ScalarType::int16},
                               std::pair{std::pair{Code::Int, 32}, ScalarType::int32},
                               std::pair{std::pair{Code::Int, 64}, ScalarType::int64},
                               std::pair{std::pair{Code::Float, 16}, ScalarType::float16},
                               std::pair{std::pair{Code::Float, 32}, ScalarType::float32},
                               std::pair{std::pair{Code::Float, 64}, ScalarType::float64},
                               std::pair{std::pair{Code::Bfloat, 16}, ScalarType::bfloat16},
                               std::pair{std::pair{Code::Bool, 8}, ScalarType::boolean}};
    for (const auto& [from, to] : types)
        if (is(from.first, from.second))
            return to;
    throw nb::type_error("drawpoint.rows: values must be bool, int8 to int64, uint8, float16 to float64 or bfloat16");
}

/// A data set of files.
template <class Data>
struct Files {
    std::shared_ptr<const Data> data;
};

using HostArray = nb::ndarray<nb::c_contig, nb::device::cpu, nb::ro>;

Source
rows_of(const HostArray& data,
        const std::optional<nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>& targets) {
    if (data.ndim() < 1 || data.ndim() > 5)
        throw nb::value_error("drawpoint.rows: data must have 1 to 5 dimensions, the first of samples");
    SampleLayout layout{.type = type_of(data.dtype()), .rank = static_cast<std::uint8_t>(data.ndim() - 1)};
    for (std::size_t i = 1; i < data.ndim(); ++i)
        layout.shape[i - 1] = static_cast<std::int64_t>(data.shape(i));
    struct Owner {   // freed with the interpreter's lock, which the last user may not have
        std::vector<nb::object> arrays;
        ~Owner() {
            const nb::gil_scoped_acquire lock;
            arrays.clear();
        }
    };
    auto owner = std::make_shared<Owner>();
    owner->arrays.push_back(nb::cast(data));
    std::span<const std::int64_t> values;
    if (targets) {
        values = {targets->data(), targets->size()};
        owner->arrays.push_back(nb::cast(*targets));
    }
    const auto* const bytes = static_cast<const std::byte*>(data.data());
    return {std::make_shared<const TensorRows>(std::span{bytes, data.nbytes()}, layout, values, std::move(owner))};
}

std::pair<std::uint32_t, std::uint32_t> size_in(const nb::object& size) {
    if (nb::isinstance<nb::int_>(size)) {
        const auto side = nb::cast<std::uint32_t>(size);
        return {side, side};
    }
    return nb::cast<std::pair<std::uint32_t, std::uint32_t>>(size);
}

}   // namespace

void add_sources(nb::module_& module) {
    nb::class_<DecodeImage>(module, "DecodeImage");
    nb::class_<DecodeJpeg>(module, "DecodeJpeg");
    nb::class_<ToUint8>(module, "ToUint8");
    nb::class_<RandomResizedCrop>(module, "RandomResizedCrop",
                                  "A random part by torchvision's rule, resized (antialiased).")
        .def(
            "__init__",
            [](RandomResizedCrop* made, const nb::object& size) {
                const auto [height, width] = size_in(size);
                new (made) RandomResizedCrop{.height = height, .width = width};
            },
            nb::arg("size"));
    nb::class_<CenterCrop>(module, "CenterCrop",
                           "The largest box of that aspect ratio in the centre, scaled by `share`, resized.")
        .def(
            "__init__",
            [](CenterCrop* made, const nb::object& size, double share) {
                const auto [height, width] = size_in(size);
                new (made) CenterCrop{.height = height, .width = width, .share = share};
            },
            nb::arg("size"), nb::arg("share") = 0.875);
    nb::class_<RandomHorizontalFlip>(module, "RandomHorizontalFlip", "Mirrors left to right with probability `p`.")
        .def(
            "__init__", [](RandomHorizontalFlip* made, double p) { new (made) RandomHorizontalFlip{p}; },
            nb::arg("p") = 0.5);
    nb::class_<Normalize>(module, "Normalize", "(value / 255 - mean) / std, per channel.")
        .def(
            "__init__",
            [](Normalize* made, const std::array<float, 3>& mean, const std::array<float, 3>& std) {
                new (made) Normalize{{.mean = mean, .standard_deviation = std}};
            },
            nb::arg("mean"), nb::arg("std"))
        .def_static("imagenet", &Normalize::imagenet, "ImageNet's means and deviations.");
    module.attr("decode_image") = DecodeImage{};
    module.attr("decode_jpeg") = DecodeJpeg{};
    module.attr("to_uint8") = ToUint8{};

    nb::class_<Source>(module, "Source", "Samples that a DataLoader draws.")
        .def("__len__", [](const Source& source) { return source.samples->size(); })
        .def_prop_ro(
            "stages", [](const Source& source) { return source.samples->stages(); }, "Names of the timed stages.")
        .def(
            "path",
            [](const Source& source, std::uint64_t index) {
                if (index >= source.samples->size())
                    throw nb::index_error("drawpoint: no such sample");
                return source.samples->path(index);
            },
            nb::arg("index"), "The file of a sample, or an empty text.");
    nb::class_<ImageSource, Source>(module, "ImageSource")
        .def(
            "__or__",
            [](const ImageSource& of, const RandomHorizontalFlip& stage) { return ImageSource{of.recipe | stage}; },
            nb::is_operator())
        .def(
            "__or__", [](const ImageSource& of, const Normalize& stage) { return ImageSource{of.recipe | stage}; },
            nb::is_operator())
        .def(
            "__or__", [](const ImageSource& of, const ToUint8& stage) { return ImageSource{of.recipe | stage}; },
            nb::is_operator());
    nb::class_<ArraySource, Source>(module, "ArraySource")
        .def(
            "__or__", [](const ArraySource& of, const Normalize& stage) { return ArraySource{of.rows | stage}; },
            nb::is_operator())
        .def(
            "to_float",
            [](const ArraySource& of, std::vector<float> mean, std::vector<float> std) {
                return ArraySource{of.rows.to_float(std::move(mean), std::move(std))};
            },
            nb::arg("mean") = std::vector<float>{}, nb::arg("std") = std::vector<float>{},
            "The same rows as float32: (value / 255 - mean) / std.");
    nb::class_<DecodedImages>(module, "DecodedImages")
        .def(
            "__or__", [](const DecodedImages& of, const RandomResizedCrop& crop) { return ImageSource{of | crop}; },
            nb::is_operator())
        .def(
            "__or__", [](const DecodedImages& of, const CenterCrop& crop) { return ImageSource{of | crop}; },
            nb::is_operator());

    const auto add_files = [&]<class Data>(const char* name, const char* about, std::type_identity<Data>) {
        using Held = Files<Data>;
        return nb::class_<Held>(module, name, about)
            .def(
                "__init__",
                [](Held* made, const std::filesystem::path& where) {
                    const nb::gil_scoped_release listing;
                    new (made) Held{std::make_shared<const Data>(where.string())};
                },
                nb::arg("where"))
            .def(
                "__or__", [](const Held& of, const DecodeImage& decode) { return of.data | decode; }, nb::is_operator())
            .def(
                "__or__", [](const Held& of, const DecodeJpeg& decode) { return of.data | decode; }, nb::is_operator())
            .def("__len__", [](const Held& of) { return of.data->size(); });
    };
    add_files("ImageFolder",
              "A labelled data set on disk: one folder per class, JPEG, PNG or WebP images anywhere below it.",
              std::type_identity<ImageFolder>{})
        .def_prop_ro("classes", [](const Files<ImageFolder>& of) {
            std::vector<std::string> names;
            for (std::size_t i = 0; i < of.data->num_classes(); ++i)
                names.push_back(of.data->class_name(i));
            return names;
        });
    add_files("TarShards", "Labelled images in tar archives with WebDataset's names.", std::type_identity<TarShards>{});

    module.def(
        "npy",
        [](const std::filesystem::path& data, const std::optional<std::filesystem::path>& targets) {
            return ArraySource{npy(data, targets.value_or(std::filesystem::path{}))};
        },
        nb::arg("data"), nb::arg("targets") = nb::none(), "The rows of a .npy file.");
    module.def(
        "idx",
        [](const std::filesystem::path& data, const std::optional<std::filesystem::path>& targets) {
            return ArraySource{idx(data, targets.value_or(std::filesystem::path{}))};
        },
        nb::arg("data"), nb::arg("targets") = nb::none(), "The rows of an idx file, compressed or not.");
    module.def("rows", &rows_of, nb::arg("data"), nb::arg("targets") = nb::none(),
               "The rows of an array in memory, of numpy, torch or any library with DLPack. It is not copied if it is "
               "contiguous; targets, if they are int64 besides.");
}

}   // namespace drawpoint::python
