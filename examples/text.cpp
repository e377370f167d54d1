// Trains on texts of any length: a file with a class and a text on each line, or by default made-up reviews. Batches
// group texts of similar length, are padded to the longest one, and carry a mask of the real words.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/Parallel.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include <drawpoint/drawpoint.hpp>
#include <drawpoint/pipeline/torch/tensors.hpp>

struct Texts {
    std::vector<std::string> texts;
    std::vector<std::int64_t> classes;
};

Texts read_texts(const std::string& path) {
    constexpr std::int64_t most_classes = 10'000;   // the model has one output per class
    std::ifstream file{path};
    Texts data;
    std::string line;
    for (std::size_t number = 1; std::getline(file, line); ++number) {
        std::istringstream fields{line};
        std::int64_t of_class = 0;
        std::string text;
        if ((fields >> std::ws).eof())
            continue;   // an empty line
        if (!(fields >> of_class) || of_class < 0 || of_class >= most_classes ||
            (fields.peek() != std::istringstream::traits_type::eof() && !std::isspace(fields.peek())))
            throw std::runtime_error{path + ": line " + std::to_string(number) + ": expected a class from 0 to " +
                                     std::to_string(most_classes - 1) + " and a text, got '" + line.substr(0, 60) +
                                     "'"};
        std::getline(fields, text);
        data.classes.push_back(of_class);
        data.texts.push_back(text);
    }
    if (data.texts.empty())
        throw std::runtime_error{path + ": no lines of a class and a text"};
    return data;
}

Texts reviews(std::size_t count) {
    constexpr std::array<std::array<std::string_view, 6>, 2> opinions{
        {{"dull", "poor", "slow", "broken", "boring", "awful"}, {"great", "fun", "lovely", "sharp", "bright", "warm"}}};
    constexpr std::array<std::string_view, 12> others{"the",  "film", "was",  "and", "a",     "its",
                                                      "plot", "with", "some", "in",  "scene", "music"};
    std::mt19937 random{7};
    Texts data;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t of_class = i % 2, length = 3 + random() % 40;
        std::string text{opinions[of_class][random() % 6]};
        for (std::size_t word = 1; word < length; ++word) {
            const std::size_t meant = random() % 8 == 0 ? 1 - of_class : of_class;
            text += ' ';
            text += random() % 4 == 0 ? opinions[meant][random() % 6] : others[random() % others.size()];
        }
        data.texts.push_back(text);
        data.classes.push_back(static_cast<std::int64_t>(of_class));
    }
    return data;
}

template <class F>
void for_each_word(std::string_view text, F f) {
    for (std::size_t at = text.find_first_not_of(' '); at < text.size(); at = text.find_first_not_of(' ', at)) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        f(text.substr(at, end - at));
        at = end;
    }
}

/// A learner that fit accepts: the mean of the words' embeddings, then one linear layer.
class TextClassifier {
public:
    TextClassifier(std::int64_t words, std::int64_t classes)
        : embedding_{words, 16}, layer_{16, classes}, optimizer_{parameters(), torch::optim::AdamOptions{2e-2}} {}

    void begin_phase(bool) { correct_ = seen_ = 0; }
    void forward(drawpoint::Batch& batch) {
        const at::Tensor words = drawpoint::part_of(batch, "data");               // [n, longest]
        const at::Tensor mask = drawpoint::part_of(batch, "mask").unsqueeze(2);   // [n, longest, 1]
        const at::Tensor sum = (embedding_->forward(words) * mask).sum(1);        // over real words only
        const at::Tensor lengths = drawpoint::part_of(batch, "lengths").unsqueeze(1).clamp_min(1);
        output_ = layer_->forward(sum / lengths);
    }
    void loss(drawpoint::Batch& batch) {
        const at::Tensor classes = drawpoint::targets_of(batch);
        loss_ = torch::nn::functional::cross_entropy(output_, classes);
        correct_ += output_.argmax(1).eq(classes).sum().item<std::int64_t>();
        seen_ += static_cast<std::int64_t>(batch.size());
    }
    void backward() { loss_.backward(); }
    void opt_step() { optimizer_.step(); }
    void zero_grad() { optimizer_.zero_grad(); }
    void end_batch() noexcept {   // the autograd graph holds the batch's memory
        output_.reset();
        if (loss_.defined())
            loss_.detach_();
    }
    [[nodiscard]] double loss_value() const { return loss_.item<double>(); }
    [[nodiscard]] double accuracy() const { return static_cast<double>(correct_) / static_cast<double>(seen_); }

private:
    std::vector<at::Tensor> parameters() const {
        std::vector<at::Tensor> all = embedding_->parameters();
        for (const at::Tensor& tensor : layer_->parameters())
            all.push_back(tensor);
        return all;
    }
    torch::nn::Embedding embedding_;
    torch::nn::Linear layer_;
    torch::optim::Adam optimizer_;
    at::Tensor output_, loss_;
    std::int64_t correct_ = 0, seen_ = 0;
};

int main(int argc, char** argv) {
    const Texts data = argc > 1 ? read_texts(argv[1]) : reviews(4096);
    std::map<std::string, std::int64_t, std::less<>> vocabulary;   // from 1: 0 is padding
    std::vector<std::uint32_t> lengths;
    for (const std::string& text : data.texts) {
        std::uint32_t length = 0;
        for_each_word(text, [&](std::string_view word) {
            ++length;
            vocabulary.try_emplace(std::string{word}, static_cast<std::int64_t>(vocabulary.size()) + 1);
        });
        lengths.push_back(length);
    }

    drawpoint::Recorder recorder;   // in memory: no file
    drawpoint::Runtime runtime{{.max_threads = 1}, recorder};
    const drawpoint::SampleLayout words{drawpoint::ScalarType::int64, 1, {0}};   // 0: as many as the text has words
    const auto source = drawpoint::from_function(data.texts.size(), words, "words", [&](drawpoint::SampleView& sample) {
        sample.reshape({lengths[sample.index]});
        auto place = sample.values<std::int64_t>().begin();
        for_each_word(data.texts[sample.index],
                      [&](std::string_view word) { *place++ = vocabulary.find(word)->second; });
        *sample.target = data.classes[sample.index];
    });
    const drawpoint::BucketSampler order{lengths, 64, 7, {.bucket_batches = 16}};
    const drawpoint::PadCollate pad{words};
    drawpoint::DataLoader loader{runtime, source, order, {.batch_size = 64, .num_workers = 1, .collate = &pad}};

    at::set_num_threads(1);   // operators this small spend more time synchronising threads than computing
    torch::manual_seed(7);
    TextClassifier learner{static_cast<std::int64_t>(vocabulary.size()) + 1,
                           *std::ranges::max_element(data.classes) + 1};
    drawpoint::run(runtime, drawpoint::fit(learner, loader, {.epochs = 4}, recorder));

    const drawpoint::Ledger ledger = recorder.ledger();
    std::cout << drawpoint::to_text(drawpoint::summarize(ledger));
    std::vector<std::uint64_t> drawn(order.size());
    order.order(0, drawn);
    std::cout << "padding: " << drawpoint::padding_share(drawn, lengths, 64) << " of a batch\n"
              << "loss: " << *ledger.steps.front().loss << ", then " << *ledger.steps.back().loss << '\n'
              << "accuracy on the texts: " << learner.accuracy() << '\n';
}
