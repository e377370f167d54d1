#pragma once

#include <cstdint>

// DLPack 1.0: how array libraries hand memory to each other (https://dmlc.github.io/dlpack). Names as there.

namespace drawpoint::python::dlpack {

enum DeviceType : std::int32_t { kDLCPU = 1 };
enum TypeCode : std::uint8_t { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLBool = 6 };

struct DLDevice {
    std::int32_t device_type;
    std::int32_t device_id;
};
struct DLDataType {
    std::uint8_t code, bits;
    std::uint16_t lanes;
};
struct DLTensor {
    void* data;
    DLDevice device;
    std::int32_t ndim;
    DLDataType dtype;
    std::int64_t *shape, *strides;
    std::uint64_t byte_offset;
};
/// Below 1.0; its capsule is named "dltensor".
struct DLManagedTensor {
    DLTensor dl_tensor;
    void* manager_ctx;
    void (*deleter)(DLManagedTensor*);
};
struct DLPackVersion {
    std::uint32_t major, minor;
};
/// From 1.0 on; its capsule is named "dltensor_versioned".
struct DLManagedTensorVersioned {
    DLPackVersion version;
    void* manager_ctx;
    void (*deleter)(DLManagedTensorVersioned*);
    std::uint64_t flags;
    DLTensor dl_tensor;
};

}   // namespace drawpoint::python::dlpack
