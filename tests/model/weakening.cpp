#include "model/weakening.hpp"

#include <algorithm>
#include <fstream>
#include <set>

#include <boost/test/unit_test.hpp>

namespace drawpoint::model {
namespace {

using Order = std::memory_order;

std::vector<Order> weaker(Order order) {
    switch (order) {
    case Order::seq_cst: return {Order::acq_rel};
    case Order::acq_rel: return {Order::acquire, Order::release};
    default: return {Order::relaxed};
    }
}

std::string_view name_of(Order order) {
    return order == Order::relaxed   ? "relaxed"
           : order == Order::acquire ? "acquire"
           : order == Order::release ? "release"
                                     : "acq_rel";
}

std::string line_of(const Site& site) {
    std::ifstream in{site.file};
    std::string line;
    for (std::uint_least32_t i = 0; i < site.line; ++i)
        std::getline(in, line);
    return line;
}

}   // namespace

void check_orders(std::string_view file, const std::vector<Scenario>& scenarios, const std::vector<Kept>& kept) {
    std::map<Site, Order> orders;
    for (const Scenario& scenario : scenarios) {
        const Found found = explore(scenario.run);
        BOOST_TEST_MESSAGE(scenario.name << ": " << found.runs << " schedules");
        BOOST_TEST(found.violation == "", scenario.name << ": " << found.violation);
        BOOST_TEST(found.complete, scenario.name << " is too large");
        for (const auto& [site, order] : found.orders)
            if (std::string_view{site.file}.ends_with(file))
                orders.emplace(site, order);
    }
    BOOST_TEST(!orders.empty());
    std::size_t caught = 0;
    std::set<std::string_view> needed;
    for (const auto& [site, order] : orders)
        for (const Order less : weaker(order)) {
            const Weakened weakened{site, less};
            if (std::ranges::any_of(scenarios, [&](const Scenario& scenario) {
                    return !explore(scenario.run, &weakened).violation.empty();
                })) {
                ++caught;
                continue;
            }
            const std::string line = line_of(site) + " -> " + std::string{name_of(less)};
            const auto known =
                std::ranges::find_if(kept, [&](const Kept& one) { return line.find(one.where) != std::string::npos; });
            if (known != kept.end())
                needed.insert(known->where);
            else
                BOOST_ERROR(site.file << ":" << site.line << ":" << site.column << ": not noticed:" << line);
        }
    for (const Kept& one : kept)
        BOOST_TEST(needed.contains(one.where), "not needed: " << one.where);
    BOOST_TEST_MESSAGE(caught << " weakened orders found in " << orders.size() << " places");
}

}   // namespace drawpoint::model
