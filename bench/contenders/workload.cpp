#include "workload.hpp"

#include <nlohmann/json.hpp>

namespace drawpoint::bench {

void to_json(nlohmann::json& json, const Workload& w) {
    json = {{"kind", w.kind},
            {"contender", w.contender},
            {"variant", w.variant},
            {"data", w.data.string()},
            {"plan", w.plan.string()},
            {"items", w.items},
            {"batch_size", w.batch_size},
            {"num_workers", w.num_workers},
            {"prefetch_depth", w.prefetch_depth},
            {"side", w.side},
            {"seed", w.seed},
            {"jpeg_decoder", w.jpeg_decoder},
            {"resize_filter", w.resize_filter},
            {"order", w.order},
            {"compute_ns", w.compute_ns},
            {"item_ns", w.item_ns}};
}

void from_json(const nlohmann::json& json, Workload& w) {
    json.at("kind").get_to(w.kind);
    json.at("contender").get_to(w.contender);
    json.at("variant").get_to(w.variant);
    w.data = json.at("data").get<std::string>();
    w.plan = json.at("plan").get<std::string>();
    json.at("items").get_to(w.items);
    json.at("batch_size").get_to(w.batch_size);
    json.at("num_workers").get_to(w.num_workers);
    json.at("prefetch_depth").get_to(w.prefetch_depth);
    json.at("side").get_to(w.side);
    json.at("seed").get_to(w.seed);
    json.at("jpeg_decoder").get_to(w.jpeg_decoder);
    json.at("resize_filter").get_to(w.resize_filter);
    json.at("order").get_to(w.order);
    json.at("compute_ns").get_to(w.compute_ns);
    json.at("item_ns").get_to(w.item_ns);
}

}   // namespace drawpoint::bench
