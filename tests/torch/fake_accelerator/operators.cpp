// The operators: memory and views, copies in virtual time, and everything else by the CPU's kernels on the same memory.
#include <cstring>
#include <optional>
#include <tuple>
#include <vector>

#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/native/Resize.h>
#include <ATen/native/TensorFactories.h>
#include <ATen/ops/_local_scalar_dense_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <torch/library.h>

#include "torch/fake_accelerator/timeline.hpp"

namespace drawpoint::fake_accelerator {
namespace {

constexpr c10::DispatchKeySet keys{c10::DispatchKey::PrivateUse1};

bool is_here(const at::Tensor& tensor) { return tensor.defined() && tensor.is_privateuseone(); }

/// A tensor of the CPU over the same memory.
at::Tensor on_cpu(const at::Tensor& tensor) {
    if (!is_here(tensor))
        return tensor;
    return at::from_blob(tensor.mutable_data_ptr(), tensor.sizes(), tensor.strides(),
                         tensor.options().device(at::kCPU));
}

/// A tensor of the device with the values of one of the CPU.
at::Tensor on_device(const at::Tensor& tensor) {
    if (!tensor.defined() || !tensor.is_cpu())
        return tensor;
    at::Tensor made = at::empty_strided(tensor.sizes(), tensor.strides(), tensor.options().device(device()));
    on_cpu(made).copy_(tensor);
    return made;
}

/// An operator begins: what the current stream has seen by then is done.
void begin_op() {
    Timeline& line = timeline();
    line.call(&Counters::kernels);
    const auto [begin, end] = line.enqueue(current_stream(), line.settings.op_ns, Timeline::Work::kernel);
    line.settle(begin);
}

at::Tensor empty(c10::IntArrayRef size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
                 std::optional<c10::Device>, std::optional<bool>, std::optional<c10::MemoryFormat> format) {
    return at::detail::empty_generic(size, c10::GetAllocator(c10::DeviceType::PrivateUse1), keys,
                                     c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(c10::IntArrayRef size, c10::IntArrayRef stride, std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Layout>, std::optional<c10::Device>, std::optional<bool>) {
    return at::detail::empty_strided_generic(size, stride, c10::GetAllocator(c10::DeviceType::PrivateUse1), keys,
                                             c10::dtype_or_default(dtype));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
    if (is_here(from) && is_here(to)) {
        begin_op();
        on_cpu(to).copy_(on_cpu(from));
        return to;
    }
    Timeline& line = timeline();
    line.call(&Counters::copies);
    const bool is_plain = from.is_contiguous() && to.is_contiguous() && from.scalar_type() == to.scalar_type() &&
                          from.numel() == to.numel();
    const bool waits =
        !non_blocking || !is_plain || !is_pinned(is_here(from) ? to.const_data_ptr() : from.const_data_ptr());
    const auto [begin, end] = is_here(from)
                                  ? line.enqueue(current_stream(), line.settings.to_host_ns, Timeline::Work::to_host)
                                  : line.enqueue(current_stream(), line.settings.copy_ns, Timeline::Work::to_device);
    if (!is_plain) {
        line.wait_until(end);
        on_cpu(to).copy_(on_cpu(from));
        return to;
    }
    void* const destination = to.mutable_data_ptr();
    const void* const source = from.const_data_ptr();
    const std::size_t bytes = from.nbytes();
    // What the destination holds while it is written, nobody may rely on. Memory is the caller's care.
    line.at(begin, [=] { std::memset(destination, 0xA5, bytes); });
    line.at(end, [=] { std::memcpy(destination, source, bytes); });
    if (waits)
        line.wait_until(end);
    return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
    at::native::resize_(to, from.sizes(), std::nullopt);
    return copy_from(from, to, false);
}

at::Scalar local_scalar(const at::Tensor& tensor) {
    Timeline& line = timeline();
    line.call(&Counters::copies);
    const auto [begin, end] = line.enqueue(current_stream(), 0, Timeline::Work::to_host);
    line.wait_until(end);
    return at::native::_local_scalar_dense_cpu(on_cpu(tensor));
}

at::Tensor view(const at::Tensor& tensor, c10::SymIntArrayRef size) {
    return at::native::view(tensor, C10_AS_INTARRAYREF_SLOW(size));
}
at::Tensor as_strided(const at::Tensor& tensor, c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                      std::optional<c10::SymInt> offset) {
    return at::native::as_strided_tensorimpl(tensor, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
                                             offset ? std::optional{offset->guard_int(__FILE__, __LINE__)}
                                                    : std::nullopt);
}
at::Tensor reshape_alias(const at::Tensor& tensor, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
    return at::native::_reshape_alias(tensor, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}
const at::Tensor& resize(const at::Tensor& tensor, c10::SymIntArrayRef size, std::optional<at::MemoryFormat> format) {
    return at::native::resize_(tensor, C10_AS_INTARRAYREF_SLOW(size), format);
}

std::vector<std::int64_t> ints(c10::SymIntArrayRef values) { return C10_AS_INTARRAYREF_SLOW(values).vec(); }

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                       bool transposed, c10::SymIntArrayRef output_padding, c10::SymInt groups) {
    begin_op();
    const std::optional<at::Tensor> cpu_bias = bias ? std::optional{on_cpu(*bias)} : std::nullopt;
    return on_device(at::convolution(on_cpu(input), on_cpu(weight), cpu_bias, ints(stride), ints(padding),
                                     ints(dilation), transposed, ints(output_padding), groups.expect_int()));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor>
convolution_backward(const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight,
                     c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                     bool transposed, c10::SymIntArrayRef output_padding, c10::SymInt groups,
                     std::array<bool, 3> mask) {
    begin_op();
    const std::vector<std::int64_t> bias_sizes{transposed ? weight.size(1) : weight.size(0)};
    auto [to_input, to_weight, to_bias] = at::convolution_backward(
        on_cpu(gradient), on_cpu(input), on_cpu(weight), bias_sizes, ints(stride), ints(padding), ints(dilation),
        transposed, ints(output_padding), groups.expect_int(), mask);
    return {on_device(to_input), on_device(to_weight), on_device(to_bias)};
}

/// Any other operator: the CPU's, at once, on the same memory. Results are moved to the device; what is written in
/// place is there already.
void by_cpu(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    begin_op();
    const std::size_t arguments = op.schema().arguments().size(), results = op.schema().returns().size();
    const std::size_t first = stack->size() - arguments;
    std::vector<at::Tensor> originals, aliases;
    const auto alias_of = [&](const at::Tensor& tensor) {
        if (!is_here(tensor))
            return tensor;
        originals.push_back(tensor);
        aliases.push_back(on_cpu(tensor));
        return aliases.back();
    };
    for (std::size_t i = first; i < stack->size(); ++i) {
        c10::IValue& value = (*stack)[i];
        if (value.isTensor()) {
            value = alias_of(value.toTensor());
        } else if (value.isTensorList()) {
            std::vector<at::Tensor> list = value.toTensorVector();
            for (at::Tensor& tensor : list)
                tensor = alias_of(tensor);
            value = c10::List<at::Tensor>{list};
        } else if (value.isOptionalTensorList()) {
            c10::List<std::optional<at::Tensor>> list;
            for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector())
                list.push_back(tensor ? std::optional{alias_of(*tensor)} : std::nullopt);
            value = list;
        } else if (value.isDevice()) {
            value = c10::Device{c10::DeviceType::CPU};
        }
    }
    op.redispatchBoxed(c10::DispatchKeySet{c10::DispatchKey::CPU}, stack);
    const auto back = [&](const at::Tensor& tensor) {
        for (std::size_t i = 0; i < aliases.size(); ++i) {
            if (!tensor.is_same(aliases[i]))
                continue;
            if (tensor.const_data_ptr() != originals[i].const_data_ptr() ||
                !tensor.sizes().equals(originals[i].sizes())) {
                at::native::resize_(originals[i], tensor.sizes(), std::nullopt);   // an `out` that was too small
                on_cpu(originals[i]).copy_(tensor);
            }
            return originals[i];
        }
        return on_device(tensor);
    };
    for (std::size_t i = stack->size() - results; i < stack->size(); ++i) {
        c10::IValue& value = (*stack)[i];
        if (value.isTensor()) {
            value = back(value.toTensor());
        } else if (value.isTensorList()) {
            std::vector<at::Tensor> list = value.toTensorVector();
            for (at::Tensor& tensor : list)
                tensor = back(tensor);
            value = c10::List<at::Tensor>{list};
        }
    }
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
    m.impl("empty.memory_format", empty);
    m.impl("empty_strided", empty_strided);
    m.impl("as_strided", as_strided);
    m.impl("view", view);
    m.impl("_reshape_alias", reshape_alias);
    m.impl("resize_", resize);
    m.impl("_copy_from", copy_from);
    m.impl("_copy_from_and_resize", copy_from_and_resize);
    m.impl("_local_scalar_dense", local_scalar);
    m.impl("convolution_overrideable", convolution);
    m.impl("convolution_backward_overrideable", convolution_backward);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&by_cpu>()); }

}   // namespace
}   // namespace drawpoint::fake_accelerator
