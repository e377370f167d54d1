#include <boost/test/unit_test.hpp>

#include <array>
#include <cstdio>
#include <memory>
#include <random>
#include <string>

#include <drawpoint/instrumentation/text/detail/shell.hpp>

namespace {

using namespace drawpoint;

/// How a shell reads a word.
std::string read_by_a_shell(const std::string& word) {
    const std::string command = "printf %s " + word;
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe{::popen(command.c_str(), "r"), ::pclose};
    std::string text;
    std::array<char, 256> piece;
    while (const std::size_t got = std::fread(piece.data(), 1, piece.size(), pipe.get()))
        text.append(piece.data(), got);
    return text;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(shell)

BOOST_AUTO_TEST_CASE(a_plain_word_stands_as_it_is_and_any_other_in_quotes) {
    BOOST_TEST(shell_word("--data=/a/b-c_1.0,x@y%z+w:v") == "--data=/a/b-c_1.0,x@y%z+w:v");
    BOOST_TEST(shell_word("two words") == "'two words'");
    BOOST_TEST(shell_word("") == "''");
    BOOST_TEST(shell_word("it's") == "'it'\\''s'");
}

BOOST_AUTO_TEST_CASE(a_shell_reads_back_every_text_as_one_word) {
    std::minstd_rand random{7};
    const std::string_view letters = "ab'\"\\$`*?[]{}()<>|&;!#~ \t\n-_=\xc3\xa9";
    for (int text_number = 0; text_number < 100; ++text_number) {
        std::string text;
        for (auto length = random() % 12; length-- > 0;)
            text += letters[random() % letters.size()];
        BOOST_TEST(read_by_a_shell(shell_word(text)) == text, text);
    }
}

BOOST_AUTO_TEST_SUITE_END()
