// fit is lazy: a temporary argument would be destroyed before it starts.
// expect: deleted
#include <drawpoint/loop/fit.hpp>

#include <utility>

using namespace drawpoint;

struct Data {
    struct Batch {
        std::size_t size() const noexcept { return 1; }
        void reset() noexcept {}
    };
    struct Pass {
        using Batch = Data::Batch;
        std::optional<std::size_t> size() const { return 0; }
        Awaitable<std::optional<Batch>> next() { co_return std::nullopt; }
    };
    Pass epoch(std::size_t, EpochOptions) { return {}; }
};
struct Model {
    void begin_phase(bool) {}
    void forward(Data::Batch&) {}
    void loss(Data::Batch&) {}
    void backward() {}
    void opt_step() {}
    void zero_grad() {}
    double loss_value() { return 0; }
};

#ifdef DRAWPOINT_SHOULD_FAIL
#define DATA                                                                                                           \
    Data {}
#else
#define DATA data
#endif

Awaitable<void> train(Model& model, [[maybe_unused]] Data& data, Recorder& recorder) {
    return fit(model, DATA, FitOptions{}, recorder);
}
