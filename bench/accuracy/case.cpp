#include "case.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <numbers>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <drawpoint/pipeline/rng.hpp>

namespace drawpoint::bench {
namespace {

using Json = nlohmann::json;

/// Reads the fields of one object of a case file. A field that nobody asked for is an error in the file.
class Fields {
public:
    Fields(const Json& object, std::string where) : object_{&object}, where_{std::move(where)} {
        if (!object.is_object())
            refuse("", "must be an object");
    }
    [[nodiscard]] const Json* find(const char* name) {
        asked_.emplace_back(name);
        const auto found = object_->find(name);
        return found == object_->end() ? nullptr : &*found;
    }
    [[nodiscard]] std::string where(std::string_view name) const { return fmt::format("{}.{}", where_, name); }
    [[noreturn]] void refuse(std::string_view name, std::string_view why) const {
        throw std::invalid_argument{fmt::format("case {}{}{}: {}", where_, name.empty() ? "" : ".", name, why)};
    }
    void number(const char* name, double& to, double low = 0, double high = 1e9) {
        const Json* const value = find(name);
        if (value == nullptr)
            return;
        if (!value->is_number() || !(value->get<double>() >= low && value->get<double>() <= high))
            refuse(name, fmt::format("must be a number from {:g} to {:g}", low, high));
        to = value->get<double>();
    }
    template <class Integer>
    void count(const char* name, Integer& to, std::uint64_t low = 0, std::uint64_t high = 1'000'000) {
        const Json* const value = find(name);
        if (value == nullptr)
            return;
        if (!value->is_number_unsigned() || value->get<std::uint64_t>() < low || value->get<std::uint64_t>() > high)
            refuse(name, fmt::format("must be a whole number from {} to {}", low, high));
        to = static_cast<Integer>(value->get<std::uint64_t>());
    }
    void text(const char* name, std::string& to, std::initializer_list<std::string_view> known = {}) {
        const Json* const value = find(name);
        if (value == nullptr)
            return;
        if (!value->is_string())
            refuse(name, "must be a text");
        to = value->get<std::string>();
        if (known.size() != 0 && std::ranges::find(known, to) == known.end())
            refuse(name, fmt::format("'{}' is none of {}", to, fmt::join(known, ", ")));
    }
    void flag(const char* name, bool& to) {
        const Json* const value = find(name);
        if (value == nullptr)
            return;
        if (!value->is_boolean())
            refuse(name, "must be true or false");
        to = value->get<bool>();
    }
    void end() const {
        for (const auto& [name, value] : object_->items())
            if (std::ranges::find(asked_, name) == asked_.end())
                refuse(name, fmt::format("unknown; known are {}", fmt::join(asked_, ", ")));
    }

private:
    const Json* object_;
    std::string where_;
    std::vector<std::string> asked_;
};

void read_variation(Fields& of, Variation& variation) {
    of.number("sigma", variation.sigma, 0, 3);
    of.number("rare_share", variation.rare_share, 0, 1);
    of.number("rare_factor", variation.rare_factor, 1, 1000);
}

CaseStage read_stage(const Json& json, const std::string& where) {
    Fields fields{json, where};
    CaseStage stage;
    fields.text("name", stage.name);
    if (stage.name.empty() || stage.name == "read")
        fields.refuse("name", "must be a text, and not 'read'");
    fields.number("work_us", stage.work_us);
    fields.number("wait_us", stage.wait_us);
    fields.count("jpeg_decodes", stage.jpeg_decodes, 0, 64);
    if (stage.jpeg_decodes % 2 != 0)
        fields.refuse("jpeg_decodes", "must be even, to be halved");
    if (stage.jpeg_decodes > 0 && !(stage.work_us > 0))
        fields.refuse("work_us", "must be above 0, decoding included, where jpeg_decodes is");
    read_variation(fields, stage.variation);
    fields.flag("by_size", stage.by_size);
    fields.end();
    return stage;
}

void read_setting(const Json& json, const std::string& where, LoaderSetting& setting) {
    Fields fields{json, where};
    fields.count("num_workers", setting.num_workers, 1, 64);
    fields.count("prefetch_depth", setting.prefetch_depth, 1, 55);
    fields.count("read_concurrency", setting.read_concurrency, 0, 256);
    fields.count("memory_budget", setting.memory_budget, 0, std::uint64_t{1} << 40);
    if (const Json* const order = fields.find("order")) {
        if (*order == "in" || *order == "out")
            setting.order = OrderRule::parse(order->get<std::string>()).value();
        else
            fields.count("order", setting.order.max_overtakes, 1, 54);
    }
    fields.end();
}

void read_disturbance(const Json& json, const std::string& where, Case& to) {
    Fields fields{json, where};
    constexpr std::array<std::string_view, 6> kinds{"none",  "external-load", "speed-up",
                                                    "drift", "clock-step",    "lost-records"};
    std::string kind;
    fields.text("kind", kind);
    const auto found = std::ranges::find(kinds, kind);
    if (found == kinds.end())
        fields.refuse("kind", fmt::format("'{}' is none of {}", kind, fmt::join(kinds, ", ")));
    to.disturbance = static_cast<Disturbance>(found - kinds.begin());
    fields.number("size", to.disturbance_size);
    fields.number("from", to.disturbance_from, 0, 1);
    fields.number("to", to.disturbance_to, 0, 1);
    fields.end();
}

void read_grid(const Json& json, const std::string& where, Case& to) {
    Fields fields{json, where};
    const auto list = [&](const char* name, std::vector<std::size_t>& values) {
        const Json* const found = fields.find(name);
        if (found == nullptr || !found->is_array() || found->empty())
            fields.refuse(name, "must be a list of numbers");
        for (const Json& value : *found) {
            if (!value.is_number_unsigned() || value.get<std::size_t>() < 1 || value.get<std::size_t>() > 55)
                fields.refuse(name, "must be whole numbers from 1 to 55");
            values.push_back(value.get<std::size_t>());
        }
    };
    list("num_workers", to.grid_workers);
    list("prefetch_depth", to.grid_depths);
    fields.end();
}

std::uint64_t digest_of(std::string_view text) noexcept {   // FNV-1a
    std::uint64_t digest = 0xcbf29ce484222325u;
    for (const char c : text)
        digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
    return digest;
}

}   // namespace

bool Case::jpeg() const noexcept {
    return std::ranges::any_of(stages, [](const CaseStage& stage) { return stage.jpeg_decodes > 0; });
}

Case parse_case(std::string_view text, std::string name) {
    Json json;
    try {
        json = Json::parse(text);
    } catch (const Json::exception& error) {
        throw std::invalid_argument{fmt::format("case {}: {}", name, error.what())};
    }
    Case result;
    result.name = std::move(name);
    result.digest = digest_of(text);
    Fields fields{json, result.name};
    fields.text("about", result.about);
    fields.text("kind", result.kind, {"single", "compound", "control", "adversarial"});
    fields.text("injected", result.injected);
    fields.text("severity", result.severity, {"mild", "strong"});
    fields.text("noise", result.noise, {"low", "high"});
    fields.count("batch_size", result.setting.batch_size, 1, 4096);
    fields.count("steps", result.steps, 4, 100'000);
    fields.count("sample_bytes", result.sample_bytes, 4, std::uint64_t{1} << 30);
    if (const Json* const setting = fields.find("setting"))
        read_setting(*setting, fields.where("setting"), result.setting);
    if (const Json* const read = fields.find("read")) {
        Fields of{*read, fields.where("read")};
        of.number("latency_us", result.read.latency_us);
        of.number("bytes", result.read.bytes);
        of.number("megabytes_per_s", result.read.megabytes_per_s);
        read_variation(of, result.read.variation);
        of.flag("by_size", result.read.by_size);
        if (result.read.megabytes_per_s > 0 && !(result.read.bytes > 0))
            of.refuse("bytes", "must be above 0 where megabytes_per_s is");
        of.end();
    }
    const Json* const stages = fields.find("stages");
    if (stages == nullptr || !stages->is_array() || stages->empty() || stages->size() >= max_stages)
        fields.refuse("stages", fmt::format("must be a list of 1 to {} stages", max_stages - 1));
    for (const Json& stage : *stages)
        result.stages.push_back(read_stage(stage, fields.where(fmt::format("stages[{}]", result.stages.size()))));
    if (std::ranges::count_if(result.stages, [](const CaseStage& stage) { return stage.jpeg_decodes > 0; }) > 1)
        fields.refuse("stages", "only one may have jpeg_decodes");
    fields.number("collate_us", result.collate_us);
    fields.number("transfer_us", result.transfer_us);
    if (const Json* const consumer = fields.find("consumer")) {
        Fields of{*consumer, fields.where("consumer")};
        CaseConsumer& to = result.consumer;
        of.number("wait_us", to.wait_us);
        of.number("work_us", to.work_us);
        of.number("jitter", to.jitter, 0, 1);
        of.count("burst_length", to.burst_length, 0, 1000);
        of.number("burst_factor", to.burst_factor, 1, 2);
        of.count("threads", to.threads, 1, 16);
        of.end();
    }
    if (const Json* const disturbance = fields.find("disturbance"))
        read_disturbance(*disturbance, fields.where("disturbance"), result);
    if (const Json* const grid = fields.find("grid"))
        read_grid(*grid, fields.where("grid"), result);
    fields.end();
    return result;
}

std::string read_text(const std::filesystem::path& path) {
    std::ifstream file{path, std::ios::binary};
    std::string text{std::istreambuf_iterator<char>{file}, {}};
    if (!file)
        throw std::runtime_error{"cannot read " + path.string()};
    return text;
}

void write_text(const std::filesystem::path& path, std::string_view text) {
    const std::filesystem::path part = path.string() + ".part";
    std::ofstream file{part, std::ios::binary};
    file << text;
    file.close();
    if (!file)
        throw std::runtime_error{"cannot write " + part.string()};
    std::filesystem::rename(part, path);
}

std::vector<Case> read_cases(const std::filesystem::path& folder) {
    std::vector<std::filesystem::path> paths;
    for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator{folder})
        if (entry.path().extension() == ".json")
            paths.push_back(entry.path());
    std::ranges::sort(paths);
    if (paths.empty())
        throw std::invalid_argument{fmt::format("no case (*.json) in {}", folder.string())};
    std::vector<Case> cases;
    for (const std::filesystem::path& path : paths)
        cases.push_back(parse_case(read_text(path), path.stem().string()));
    return cases;
}

std::vector<double> factors_of(const Variation& variation, std::size_t place, std::size_t count,
                               std::uint32_t sample_set) {
    std::vector<double> factors(count, 1.0);
    for (std::size_t index = 0; index < count; ++index) {
        CounterRng random{0x6163637572616379u + sample_set, static_cast<std::uint32_t>(place), index};
        const double u = 1 - random.uniform(), angle = 2 * std::numbers::pi * random.uniform();
        const double normal = std::sqrt(-2 * std::log(u)) * std::cos(angle);   // Box-Muller
        factors[index] = std::exp(variation.sigma * normal - variation.sigma * variation.sigma / 2);
        if (random.uniform() < variation.rare_share)
            factors[index] *= variation.rare_factor;
    }
    if (variation.spread != 1 && count > 0) {
        const double mean = std::accumulate(factors.begin(), factors.end(), 0.0) / static_cast<double>(count);
        for (double& factor : factors)
            factor = mean + variation.spread * (factor - mean);
    }
    return factors;
}

double step_factor(const CaseConsumer& consumer, std::size_t step, std::uint32_t sample_set) noexcept {
    double factor = 1;
    if (consumer.burst_length > 0)
        factor = step / consumer.burst_length % 2 == 0 ? consumer.burst_factor : 2 - consumer.burst_factor;
    if (consumer.jitter > 0)
        factor *= 1 + consumer.jitter * (2 * CounterRng{0x6A69u, sample_set, step}.uniform() - 1);
    return factor;
}

}   // namespace drawpoint::bench
