#include <drawpoint/instrumentation/event.hpp>

#include <boost/test/unit_test.hpp>

#include <set>
#include <string>

namespace drawpoint {

BOOST_AUTO_TEST_SUITE(event)

BOOST_AUTO_TEST_CASE(every_event_span_and_action_has_a_name_of_its_own) {
    std::set<std::string_view> spans, actions;
    for (std::size_t i = 0; i < span_count; ++i)
        spans.insert(name_of(static_cast<Span>(i)));
    for (std::size_t i = 0; i < action_count; ++i)
        actions.insert(name_of(static_cast<Action>(i)));
    BOOST_TEST(spans.size() == span_count);
    BOOST_TEST(actions.size() == action_count);
    BOOST_TEST(!spans.contains(""));
    BOOST_TEST(!actions.contains(""));
}

BOOST_AUTO_TEST_CASE(the_callbacks_of_an_event_are_the_span_of_its_name) {
    for (std::size_t i = 0; i < event_count; ++i)
        BOOST_TEST(name_of(static_cast<Event>(i)) == name_of(span_of(static_cast<Event>(i))));
}

BOOST_AUTO_TEST_CASE(draw_is_the_time_from_before_draw_to_before_batch_and_batch_from_there_to_after_batch) {
    for (const ActionSpan& span : action_spans) {
        if (span.action == Action::draw) {
            BOOST_TEST((span.from.event == Event::before_draw && !span.from.end));
            BOOST_TEST((span.to.event == Event::before_batch && !span.to.end));
        }
        if (span.action == Action::batch) {
            BOOST_TEST((span.from.event == Event::before_batch && !span.from.end));
            BOOST_TEST((span.to.event == Event::after_batch && span.to.end));
        }
    }
}

BOOST_AUTO_TEST_CASE(names_and_values_of_the_last_entries_agree) {   // a missing name in the middle would shift these
    BOOST_TEST(name_of(Event::after_fit) == "after_fit");
    BOOST_TEST(name_of(Span::between) == "between");
    BOOST_TEST(name_of(Action::end_of_data) == "end_of_data");
    BOOST_TEST(name_of(PassKind::valid) == "valid");
    BOOST_TEST(name_of(StepStatus::failed) == "failed");
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace drawpoint
