#include <boost/test/unit_test.hpp>

#include <sstream>
#include <string>
#include <vector>

#include <drawpoint/instrumentation/text/terminal.hpp>

namespace {

using namespace drawpoint;

BOOST_AUTO_TEST_SUITE(terminal)

BOOST_AUTO_TEST_CASE(texts_are_measured_cut_and_wrapped_by_columns) {
    BOOST_TEST(columns_of("abc") == 3u);
    BOOST_TEST(columns_of("写真") == 4u);
    BOOST_TEST(columns_of("e\xCC\x81") == 1u);   // a combining accent
    BOOST_TEST(cut("abcdef", 4) == "abc…");
    BOOST_TEST(cut("abcd", 4) == "abcd");
    BOOST_TEST(cut("写真写真", 4) == "写…");
    BOOST_TEST(cut("abc", 0).empty());
    BOOST_TEST((wrapped("one two three", 8) == std::vector<std::string>{"one two", "three"}));
    BOOST_TEST((wrapped("abcdefgh", 3) == std::vector<std::string>{"abc", "def", "gh"}));
    BOOST_TEST(bar_text(0.5, 4) == "██");
    BOOST_TEST(bar_text(2, 2) == "██");
    BOOST_TEST(sparkline({0, 1, 2}, 3) == "▁▅█");
    BOOST_TEST(columns_of(sparkline(std::vector<double>(1000, 1.0), 40)) == 40u);
    BOOST_TEST(sparkline({}, 5).empty());
}

BOOST_AUTO_TEST_CASE(styles_take_no_columns_and_end_where_a_text_is_cut) {
    const std::string red = styled("abcdef", TextStyle::red, true);
    BOOST_TEST(columns_of(red) == 6u);
    BOOST_TEST(styled("abc", TextStyle::red, false) == "abc");
    BOOST_TEST(styled("", TextStyle::red, true).empty());
    BOOST_TEST(cut(red, 3) == "\x1b[31mab…\x1b[0m");
    BOOST_TEST(padded(red, 8) == red + "  ");
    BOOST_TEST(padded("ab", 4, true) == "  ab");
    BOOST_TEST(columns_of("\x1b[2J") == 4u);   // no style: it must not pass as one
}

BOOST_AUTO_TEST_CASE(long_lines_are_broken_at_blanks_and_words_stay_whole) {
    BOOST_TEST(fitted("one two three four\nfive\n", 9) == "one two\n  three\n  four\nfive\n");
    BOOST_TEST(fitted("  - one two three\n", 9) == "  - one\n    two\n    three\n");
    BOOST_TEST(fitted("see /a/path/without/blanks for more\n", 10) == "see\n  /a/path/without/blanks\n  for more\n");
    BOOST_TEST(fitted("| a | row | of | Markdown |\n", 10) == "| a | row | of | Markdown |\n");
    BOOST_TEST(fitted("", 10).empty());
}

BOOST_AUTO_TEST_CASE(a_table_gives_up_gaps_then_columns_then_ends_of_names) {
    const TextTable table{
        .titles = {"name", "first", "second"}, .spare = {1}, .rows = {{"a long name", "1", "10"}, {"b", "22", "2"}}};
    BOOST_TEST(to_text(table) ==
               "name         first  second\na long name      1      10\nb               22       2\n");
    BOOST_TEST(to_text(table, {.width = 25}) ==
               "name        first second\na long name     1     10\nb              22      2\n");
    BOOST_TEST(to_text(table, {.width = 20}) == "name        second\na long name     10\nb                2\n");
    BOOST_TEST(to_text(table, {.width = 16}) == "name      second\na long n…     10\nb              2\n");
    BOOST_TEST(to_text(TextTable{}).empty());
}

BOOST_AUTO_TEST_CASE(tables_of_other_programs_become_narrower) {
    const std::string table = "------------------------  ----------  ----------\n"
                              "                    Name    Self CPU  # of Calls\n"
                              "------------------------  ----------  ----------\n"
                              "      aten::a_long_name      1.00us           3\n"
                              "                aten::add      20.00us          12\n"
                              "a sentence of its own\n";
    BOOST_TEST(fitted_tables(table, 60) == table);
    for (const std::size_t width : {45u, 40u, 36u, 30u}) {
        std::istringstream lines{fitted_tables(table, width)};
        std::size_t rows = 0;
        for (std::string line; std::getline(lines, line); ++rows)
            BOOST_TEST(columns_of(line) <= width, line);
        BOOST_TEST(rows == 6u);
    }
    const std::string narrow = fitted_tables(table, 40);
    for (const char* const part : {"1.00us", "20.00us", "12", "# of Calls", "a sentence of its own"})
        BOOST_TEST(narrow.find(part) != std::string::npos, narrow);
}

BOOST_AUTO_TEST_SUITE_END()

}   // namespace
