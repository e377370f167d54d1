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

// Pickling: a source remembers what made it, and is made so again.

constexpr const char* made_by = "_made_by";

void remember(nb::handle source, nb::handle function, const nb::tuple& arguments) {
    nb::setattr(source, made_by, nb::make_tuple(function, arguments));
}

const ImageRecipe& inside(const ImageSource& source) { return source.recipe; }
const ArrayRows& inside(const ArraySource& source) { return source.rows; }
const DecodedImages& inside(const DecodedImages& images) { return images; }
template <class Data>
const std::shared_ptr<const Data>& inside(const Files<Data>& files) {
    return files.data;
}
ImageSource outside(ImageRecipe recipe) { return ImageSource{std::move(recipe)}; }
ArraySource outside(ArrayRows rows) { return ArraySource{std::move(rows)}; }
DecodedImages outside(DecodedImages images) { return images; }

/// `of | stage`.
template <class Of, class Stage>
nb::object followed_by(nb::pointer_and_handle<Of> of, nb::pointer_and_handle<Stage> stage) {
    nb::object made = nb::cast(outside(inside(*of.p) | *stage.p));
    remember(made, nb::module_::import_("operator").attr("or_"), nb::make_tuple(of.h, stage.h));
    return made;
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
    const auto add_constant = [&]<class Stage>(const char* type, const char* name, Stage stage) {
        nb::class_<Stage>(module, type).def("__reduce__", [name](const Stage&) { return name; });
        module.attr(name) = stage;
    };
    add_constant("DecodeImage", "decode_image", DecodeImage{});
    add_constant("DecodeJpeg", "decode_jpeg", DecodeJpeg{});
    add_constant("ToUint8", "to_uint8", ToUint8{});
    const auto remade = [](nb::handle stage, const auto&... arguments) {
        return nb::make_tuple(stage.type(), nb::make_tuple(arguments...));
    };
    nb::class_<RandomResizedCrop>(module, "RandomResizedCrop",
                                  "A random part by torchvision's rule, resized (antialiased).")
        .def(
            "__init__",
            [](RandomResizedCrop* made, const nb::object& size) {
                const auto [height, width] = size_in(size);
                new (made) RandomResizedCrop{.height = height, .width = width};
            },
            nb::arg("size"))
        .def("__reduce__", [remade](nb::pointer_and_handle<RandomResizedCrop> crop) {
            return remade(crop.h, nb::make_tuple(crop.p->height, crop.p->width));
        });
    nb::class_<CenterCrop>(module, "CenterCrop",
                           "The largest box of that aspect ratio in the centre, scaled by `share`, resized.")
        .def(
            "__init__",
            [](CenterCrop* made, const nb::object& size, double share) {
                const auto [height, width] = size_in(size);
                new (made) CenterCrop{.height = height, .width = width, .share = share};
            },
            nb::arg("size"), nb::arg("share") = 0.875)
        .def("__reduce__", [remade](nb::pointer_and_handle<CenterCrop> crop) {
            return remade(crop.h, nb::make_tuple(crop.p->height, crop.p->width), crop.p->share);
        });
    nb::class_<RandomHorizontalFlip>(module, "RandomHorizontalFlip", "Mirrors left to right with probability `p`.")
        .def(
            "__init__", [](RandomHorizontalFlip* made, double p) { new (made) RandomHorizontalFlip{p}; },
            nb::arg("p") = 0.5)
        .def("__reduce__", [remade](nb::pointer_and_handle<RandomHorizontalFlip> flip) {
            return remade(flip.h, flip.p->probability);
        });
    nb::class_<Normalize>(module, "Normalize", "(value / 255 - mean) / std, per channel.")
        .def(
            "__init__",
            [](Normalize* made, const std::array<float, 3>& mean, const std::array<float, 3>& std) {
                new (made) Normalize{{.mean = mean, .standard_deviation = std}};
            },
            nb::arg("mean"), nb::arg("std"))
        .def_static("imagenet", &Normalize::imagenet, "ImageNet's means and deviations.")
        .def("__reduce__", [remade](nb::pointer_and_handle<Normalize> how) {
            return remade(how.h, how.p->mean, how.p->standard_deviation);
        });

    nb::class_<Source>(module, "Source", "Samples that a DataLoader draws.", nb::dynamic_attr())
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
            nb::arg("index"), "The file of a sample, or an empty text.")
        .def("__reduce__", [](nb::handle self) { return nb::getattr(self, made_by); });
    nb::class_<ImageSource, Source>(module, "ImageSource")
        .def("__or__", &followed_by<ImageSource, RandomHorizontalFlip>, nb::is_operator())
        .def("__or__", &followed_by<ImageSource, Normalize>, nb::is_operator())
        .def("__or__", &followed_by<ImageSource, ToUint8>, nb::is_operator());
    nb::class_<ArraySource, Source>(module, "ArraySource")
        .def("__or__", &followed_by<ArraySource, Normalize>, nb::is_operator())
        .def(
            "to_float",
            [](nb::pointer_and_handle<ArraySource> of, std::vector<float> mean, std::vector<float> std) {
                const nb::object call = nb::module_::import_("operator").attr("methodcaller")("to_float", mean, std);
                nb::object made = nb::cast(ArraySource{of.p->rows.to_float(std::move(mean), std::move(std))});
                remember(made, call, nb::make_tuple(of.h));
                return made;
            },
            nb::arg("mean") = std::vector<float>{}, nb::arg("std") = std::vector<float>{},
            "The same rows as float32: (value / 255 - mean) / std.");
    nb::class_<DecodedImages>(module, "DecodedImages", nb::dynamic_attr())
        .def("__or__", &followed_by<DecodedImages, RandomResizedCrop>, nb::is_operator())
        .def("__or__", &followed_by<DecodedImages, CenterCrop>, nb::is_operator())
        .def("__reduce__", [](nb::handle self) { return nb::getattr(self, made_by); });

    const auto add_files = [&]<class Data>(const char* name, const char* about, std::type_identity<Data>) {
        using Held = Files<Data>;
        return nb::class_<Held>(module, name, about, nb::dynamic_attr())
            .def(
                "__init__",
                [](nb::pointer_and_handle<Held> made, const std::filesystem::path& where) {
                    {
                        const nb::gil_scoped_release listing;
                        new (made.p) Held{std::make_shared<const Data>(where.string())};
                    }
                    remember(made.h, made.h.type(), nb::make_tuple(where));
                },
                nb::arg("where"))
            .def("__or__", &followed_by<Held, DecodeImage>, nb::is_operator())
            .def("__or__", &followed_by<Held, DecodeJpeg>, nb::is_operator())
            .def("__len__", [](const Held& of) { return of.data->size(); })
            .def("__reduce__", [](nb::handle self) { return nb::getattr(self, made_by); });
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

    using Path = std::filesystem::path;
    const auto add_array_file = [&]<class Open>(const char* name, const char* about, Open open) {
        module.def(
            name,
            [name, open](const Path& data, const std::optional<Path>& targets) {
                nb::object made = nb::cast(ArraySource{open(data, targets.value_or(Path{}))});
                remember(made, nb::module_::import_("drawpoint.loader").attr("_source"),
                         nb::make_tuple(name, data, targets));
                return made;
            },
            nb::arg("data"), nb::arg("targets") = nb::none(), about);
    };
    add_array_file("npy", "The rows of a .npy file.",
                   [](const Path& data, const Path& targets) { return npy(data, targets); });
    add_array_file("idx", "The rows of an idx file, compressed or not.",
                   [](const Path& data, const Path& targets) { return idx(data, targets); });
    module.def("rows", &rows_of, nb::arg("data"), nb::arg("targets"));
}

}   // namespace drawpoint::python
