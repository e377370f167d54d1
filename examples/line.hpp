#pragma once

// The model that the small examples train: a straight line through noisy points of y = 3x + 1.

#include <cstddef>
#include <span>

#include <drawpoint/drawpoint.hpp>

/// A learner that fit accepts (drawpoint::Learner), written without any library: squared error and gradient descent.
struct Line {
    float slope = 0, intercept = 0;

    void begin_phase(bool) {}
    void forward(drawpoint::Batch& batch) {
        const std::size_t values = batch.data().size() / sizeof(float);
        points = {reinterpret_cast<const float*>(batch.data().data()), values};
    }
    void loss(drawpoint::Batch&) {
        error = slope_gradient = intercept_gradient = 0;
        const auto count = static_cast<float>(points.size() / 2);
        for (std::size_t i = 0; i + 1 < points.size(); i += 2) {
            const float difference = slope * points[i] + intercept - points[i + 1];
            error += difference * difference / count;
            slope_gradient += difference * points[i] / count;
            intercept_gradient += difference / count;
        }
    }
    void backward() {}   // loss() has computed the gradients already
    void opt_step() {
        slope -= 0.5F * slope_gradient;
        intercept -= 0.5F * intercept_gradient;
    }
    void zero_grad() { points = {}; }
    [[nodiscard]] double loss_value() const { return static_cast<double>(error); }

private:
    std::span<const float> points;   // x, y, x, y …
    float error = 0, slope_gradient = 0, intercept_gradient = 0;
};

/// `count` points, one per row.
inline auto noisy_points(std::size_t count) {
    return drawpoint::from_function(count, {drawpoint::ScalarType::float32, 1, {2}}, "generate",
                                    [](drawpoint::SampleView& sample) {
                                        const double x = 2 * sample.random.uniform() - 1;
                                        const double noise = sample.random.uniform() - 0.5;
                                        sample.floats()[0] = static_cast<float>(x);
                                        sample.floats()[1] = static_cast<float>(3 * x + 1 + 0.1 * noise);
                                    });
}
