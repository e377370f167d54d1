#include "python/core/arrays.hpp"

#include <memory>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>

#include "python/core/dlpack.hpp"

namespace drawpoint::python {
namespace nb = nanobind;
namespace {

dlpack::DLDataType type_of(ScalarType type) noexcept {
    const auto bits = static_cast<std::uint8_t>(8 * size_of(type));
    switch (type) {
    case ScalarType::uint8: return {dlpack::kDLUInt, bits, 1};
    case ScalarType::boolean: return {dlpack::kDLBool, bits, 1};
    case ScalarType::bfloat16: return {dlpack::kDLBfloat, bits, 1};
    case ScalarType::float16:
    case ScalarType::float32:
    case ScalarType::float64: return {dlpack::kDLFloat, bits, 1};
    default: return {dlpack::kDLInt, bits, 1};
    }
}

template <class Managed>
struct Exported {
    Managed tensor;
    Array array;   // whose shape the tensor shows
    std::array<std::int64_t, 6> strides{};
};

void set_version(dlpack::DLManagedTensorVersioned& tensor) noexcept {
    tensor.version = {1, 0};
    tensor.flags = 0;
}
void set_version(dlpack::DLManagedTensor&) noexcept {}

template <class Managed>
nb::object capsule_of(const Array& array, const char* name) {
    auto exported = std::make_unique<Exported<Managed>>(Exported<Managed>{.tensor = {}, .array = array});
    std::int64_t stride = 1;
    for (std::size_t i = array.rank; i-- > 0;) {
        exported->strides[i] = stride;
        stride *= array.shape[i];
    }
    Managed& managed = exported->tensor;
    set_version(managed);
    managed.dl_tensor = {.data = array.data,
                         .device = {dlpack::kDLCPU, 0},
                         .ndim = static_cast<std::int32_t>(array.rank),
                         .dtype = type_of(array.type),
                         .shape = exported->array.shape.data(),
                         .strides = exported->strides.data(),
                         .byte_offset = 0};
    managed.manager_ctx = exported.get();
    // Of whatever thread, with the interpreter's lock or without.
    managed.deleter = [](Managed* tensor) { delete static_cast<Exported<Managed>*>(tensor->manager_ctx); };
    PyObject* const capsule = PyCapsule_New(&managed, name, [](PyObject* dropped) {
        const char* const now_named = PyCapsule_GetName(dropped);   // a consumer renames it to "used_…"
        if (now_named == nullptr || now_named[0] == 'u')
            return;
        auto* const tensor = static_cast<Managed*>(PyCapsule_GetPointer(dropped, now_named));
        tensor->deleter(tensor);
    });
    if (capsule == nullptr)
        throw nb::python_error();
    (void)exported.release();
    return nb::steal(capsule);
}

}   // namespace

nb::object to_capsule(const Array& array, bool versioned) {
    return versioned ? capsule_of<dlpack::DLManagedTensorVersioned>(array, "dltensor_versioned")
                     : capsule_of<dlpack::DLManagedTensor>(array, "dltensor");
}

void add_arrays(nb::module_& module) {
    nb::class_<Array>(
        module, "Array",
        "Values of a batch, in the loader's memory. `numpy.from_dlpack(array)`, `jax.dlpack.from_dlpack` and "
        "`torch.from_dlpack` take it without a copy.")
        .def(
            "__dlpack__",
            [](const Array& array, const nb::object& stream, std::optional<std::pair<int, int>> max_version,
               const nb::object& device, const nb::object& copy) {
                if (!stream.is_none())
                    throw nb::value_error("drawpoint: batches are in the host's memory: no stream, please");
                if (!device.is_none() && nb::cast<std::pair<int, int>>(device).first != dlpack::kDLCPU)
                    throw nb::buffer_error("drawpoint: batches are in the host's memory");
                if (!copy.is_none() && nb::cast<bool>(copy))
                    throw nb::buffer_error("drawpoint: a batch's memory is shared, not copied");
                return to_capsule(array, max_version && max_version->first >= 1);
            },
            nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
            nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
        .def("__dlpack_device__", [](const Array&) { return std::pair<int, int>{dlpack::kDLCPU, 0}; })
        .def_prop_ro("shape", [](const Array& array) {
            nb::list sizes;
            for (std::size_t i = 0; i < array.rank; ++i)
                sizes.append(array.shape[i]);
            return nb::tuple(sizes);
        });
}

}   // namespace drawpoint::python
