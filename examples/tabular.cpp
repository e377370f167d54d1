// Trains on a table: a CSV file of numbers whose last column is the class, or by default points on two rings.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <numbers>
#include <random>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <drawpoint/drawpoint.hpp>
#include <drawpoint/loop/torch/learner.hpp>

struct Table {
    std::vector<float> values;   // row-major
    std::vector<std::int64_t> classes;
};

Table read_csv(const std::string& path) {
    std::ifstream file{path};
    Table table;
    std::size_t columns = 0;
    for (std::string line; std::getline(file, line);) {
        std::vector<float> row;
        std::istringstream cells{line};
        for (std::string cell; std::getline(cells, cell, ',');)
            row.push_back(std::stof(cell));
        if (row.size() < 2 || (columns != 0 && row.size() != columns))
            throw std::runtime_error{path + ": row " + std::to_string(table.classes.size() + 1) + " has " +
                                     std::to_string(row.size()) + " columns"};
        columns = row.size();
        table.classes.push_back(static_cast<std::int64_t>(row.back()));
        table.values.insert(table.values.end(), row.begin(), row.end() - 1);
    }
    if (table.classes.empty())
        throw std::runtime_error{path + ": no rows"};
    return table;
}

Table two_rings(std::size_t rows) {
    std::mt19937 random{7};
    std::normal_distribution<float> noise{0, 0.1F};
    std::uniform_real_distribution<float> angle{0, 2 * std::numbers::pi_v<float>};
    Table table;
    for (std::size_t i = 0; i < rows; ++i) {
        const float radius = i % 2 == 0 ? 1 : 2, at = angle(random);
        table.values.insert(table.values.end(),
                            {radius * std::cos(at) + noise(random), radius * std::sin(at) + noise(random)});
        table.classes.push_back(static_cast<std::int64_t>(i % 2));
    }
    return table;
}

int main(int argc, char** argv) {
    const Table table = argc > 1 ? read_csv(argv[1]) : two_rings(4096);
    const std::size_t rows = table.classes.size(), columns = table.values.size() / rows;

    drawpoint::Recorder recorder;   // in memory: no file
    drawpoint::Runtime runtime{{.max_threads = 1}, recorder};
    const drawpoint::SampleLayout row{drawpoint::ScalarType::float32, 1, {static_cast<std::int64_t>(columns)}};
    const drawpoint::TensorRows source{std::as_bytes(std::span{table.values}), row, table.classes};
    const drawpoint::RandomSampler order{rows, 7};
    drawpoint::DataLoader loader{runtime, source, order, {.batch_size = 64, .num_workers = 1}};

    const auto classes = static_cast<std::size_t>(*std::ranges::max_element(table.classes)) + 1;
    drawpoint::TorchLearner learner{drawpoint::mlp(columns, classes, {32, 32}), {.learning_rate = 1e-2}};
    drawpoint::run(runtime, drawpoint::fit(learner, loader, {.epochs = 4}, recorder));

    const drawpoint::Summary summary = drawpoint::summarize(recorder.ledger());
    std::cout << drawpoint::to_text(summary);
    std::cout << "accuracy on the table: " << learner.metrics().accuracy() << '\n';
}
