#include <drawpoint/pipeline/torch/worker_threads.hpp>

#include <thread>

#include <ATen/Parallel.h>

#include <boost/test/unit_test.hpp>

BOOST_AUTO_TEST_SUITE(worker_threads)

BOOST_AUTO_TEST_CASE(a_limited_thread_has_one_and_those_before_and_after_it_keep_theirs) {
    const int before = at::get_num_threads();
    at::set_num_threads(2);
    const auto of_a_thread = [](bool limited) {
        int threads = 0;
        std::thread{[&] {
            if (limited)
                drawpoint::limit_torch_threads();
            threads = at::get_num_threads();
        }}.join();
        return threads;
    };
    BOOST_TEST(of_a_thread(true) == 1);
    BOOST_TEST(of_a_thread(false) == 2);
    BOOST_TEST(at::get_num_threads() == 2);
    at::set_num_threads(before);
}

BOOST_AUTO_TEST_SUITE_END()
