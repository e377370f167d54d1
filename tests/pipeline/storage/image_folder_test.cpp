#include <drawpoint/pipeline/storage/image_folder.hpp>

#include "support/temporary_folder.hpp"

#include <boost/test/unit_test.hpp>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <dirent.h>
#include <dlfcn.h>

namespace {

std::atomic<bool> errno_is_left{false};

}   // namespace

/// A call that succeeds may set errno to anything, and so may calls between two of them; this one does.
extern "C" dirent* readdir(DIR* stream) {
    static const auto of_system = reinterpret_cast<dirent* (*)(DIR*)>(::dlsym(RTLD_NEXT, "readdir"));
    dirent* const entry = of_system(stream);
    if (entry != nullptr && errno_is_left)
        errno = ENOMEM;
    return entry;
}

BOOST_AUTO_TEST_SUITE(image_folder)

namespace {

using drawpoint::ImageFolder;
using drawpoint::test::TemporaryFolder;

std::string refusal(const std::filesystem::path& path) {
    try {
        const ImageFolder folder{path};
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return {};
}

bool names(const std::string& message, const std::string& path, const std::string& reason) {
    return message.find(path) != std::string::npos && message.find(reason) != std::string::npos;
}

}   // namespace

BOOST_AUTO_TEST_CASE(classes_are_sorted_by_name_and_files_by_path) {
    const TemporaryFolder root;
    for (const char* name : {"b/2.jpg", "b/1.JPG", "a b/x.jpeg", "a b/sub/y.JpEg", "a b/notes.txt", "B/z.jpg",
                             ".git/q.jpg", "README", "b/.hidden.jpg", "b/3.PNG", "b/4.webp", "b/5.gif"})
        root.write(name, {});
    const ImageFolder folder{root.path()};
    const std::vector<std::pair<std::string, std::size_t>> expected{
        {"B/z.jpg", 0}, {"a b/sub/y.JpEg", 1}, {"a b/x.jpeg", 1}, {"b/1.JPG", 2},
        {"b/2.jpg", 2}, {"b/3.PNG", 2},        {"b/4.webp", 2}};
    BOOST_REQUIRE(folder.size() == expected.size());
    BOOST_REQUIRE(folder.num_classes() == 3u);
    BOOST_TEST(folder.class_name(0) == "B");
    BOOST_TEST(folder.class_name(1) == "a b");
    BOOST_TEST(folder.class_name(2) == "b");
    for (std::size_t index = 0; index < expected.size(); ++index) {
        BOOST_TEST(folder.path(index) == (root.path() / expected[index].first).string());
        BOOST_TEST(folder.label(index) == expected[index].second);
    }
    BOOST_TEST(folder.ignored_files() == 3u);
}

BOOST_AUTO_TEST_CASE(a_single_class_is_a_data_set) {
    const TemporaryFolder root;
    root.write("only/1.jpg", {});
    BOOST_TEST(ImageFolder{root.path()}.num_classes() == 1u);
}

BOOST_AUTO_TEST_CASE(links_that_lead_back_or_nowhere_do_no_harm) {
    const TemporaryFolder root;
    root.write("a/1.jpg", {});
    root.write("a/deep/2.jpg", {});
    std::filesystem::create_directory_symlink(root.path(), root.path() / "a/deep/back");
    std::filesystem::create_directory_symlink(root.path() / "a", root.path() / "a/deep/again");
    std::filesystem::create_symlink("self.txt", root.path() / "a/self.txt");
    std::filesystem::create_directory_symlink(root.path() / "a", root.path() / "b");
    const ImageFolder folder{root.path()};
    BOOST_TEST(folder.num_classes() == 2u);
    BOOST_TEST(folder.size() == 4u);
}

BOOST_AUTO_TEST_CASE(an_image_name_that_is_no_file_is_listed_so_that_reading_reports_it) {
    const TemporaryFolder root;
    root.write("a/1.jpg", {});
    std::filesystem::create_symlink("nowhere.jpg", root.path() / "a/2.jpg");
    BOOST_TEST(ImageFolder{root.path()}.size() == 2u);
}

BOOST_AUTO_TEST_CASE(what_a_success_leaves_in_errno_is_no_failure) {
    const TemporaryFolder root;
    root.write("a/1.jpg", {});
    errno_is_left = true;
    const std::string why = refusal(root.path());
    errno_is_left = false;
    BOOST_TEST(why == "");
}

BOOST_AUTO_TEST_CASE(what_is_not_a_data_set_is_refused_by_name) {
    const TemporaryFolder root;
    BOOST_TEST(names(refusal(root.path()), root.path().string(), "no class folders"));
    BOOST_TEST(names(refusal(root.path() / "missing"), "missing", "no such folder"));
    BOOST_TEST(refusal({}) == "no folder of images is named");
    const auto file = root.write("1.jpg", {});
    BOOST_TEST(names(refusal(file), "1.jpg", "not a folder"));
    BOOST_TEST(names(refusal(root.path()), root.path().string(), "one folder per class"));
    root.write("full/1.jpg", {});
    std::filesystem::create_directory(root.path() / "void");
    BOOST_TEST(names(refusal(root.path()), "void", "holds no .jpg"));
}

BOOST_AUTO_TEST_CASE(folders_nested_without_end_are_refused) {
    const TemporaryFolder root;
    std::string name = "a/";
    for (int depth = 0; depth < 70; ++depth)
        name += "d/";
    root.write(name + "1.jpg", {});
    BOOST_TEST(names(refusal(root.path()), "a/d", "64 folders deep"));
}

BOOST_AUTO_TEST_SUITE_END()
