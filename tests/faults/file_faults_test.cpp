// Each call of open, read, pread, write, writev, fstat, fsync, rename and linkat fails once, with several errors, or is
// cut short.
#include <boost/test/unit_test.hpp>

#include <errno.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <drawpoint/instrumentation/recorder/recorder.hpp>
#include <drawpoint/instrumentation/trace/trace.hpp>
#include <drawpoint/loop/callbacks/checkpoint_file.hpp>
#include <drawpoint/pipeline/errors.hpp>
#include <drawpoint/pipeline/loader/data_loader.hpp>
#include <drawpoint/pipeline/runtime/runtime.hpp>
#include <drawpoint/pipeline/sampling/sampler.hpp>
#include <drawpoint/pipeline/stages/array_rows.hpp>
#include <drawpoint/pipeline/stages/image_stages.hpp>
#include <drawpoint/pipeline/storage/image_folder.hpp>
#include <drawpoint/pipeline/storage/tar_pack.hpp>
#include <drawpoint/pipeline/storage/tar_shards.hpp>

#include "faults/faulty_calls.hpp"
#include "support/temporary_folder.hpp"

using namespace drawpoint;
namespace fs = std::filesystem;

namespace {

constexpr std::array errors{EIO, ENOSPC, EMFILE, ESTALE, EACCES, EINTR, 0};   // 0: cut short

/// Calls `work` again and again, with the first, second … call on a file failing, until none is left that could fail.
/// `work` returns what it got, or throws a documented error. Short reads must change nothing, nor must interruptions,
/// unless `interrupted` is false.
template <class Work>
void with_each_failure(const char* what, Work work, bool interrupted = true) {
    const auto whole = work();
    std::size_t calls = 0;
    for (const int error : errors)
        for (std::uint64_t nth = 1;; ++nth) {
            faults::fail_call(nth, error);
            std::optional<decltype(work())> got;
            try {
                got = work();
            } catch (const std::system_error&) {   // with filesystem_error
            } catch (const std::runtime_error&) {
            } catch (const std::invalid_argument&) {
            }
            const bool failed = faults::fail_no_call();
            if (!failed) {
                BOOST_TEST((got == whole), what << " without a failure");
                break;
            }
            ++calls;
            if (error == 0 || (error == EINTR && interrupted))
                BOOST_TEST((got == whole), what << ": call " << nth << " with " << error << " changes the result");
            else if (got)
                BOOST_TEST((*got == whole), what << ": call " << nth << " with " << error << " is not noticed");
        }
    BOOST_TEST_MESSAGE(what << ": " << calls << " calls failed");
    BOOST_TEST(calls > 0u);
}

fs::path corpus() { return DRAWPOINT_HOSTILE_CORPUS; }

/// A folder with a class of images that can be decoded.
void make_images(const fs::path& root) {
    fs::create_directories(root / "class");
    std::ifstream manifest{corpus() / "manifest.tsv"};
    std::size_t count = 0;
    for (std::string line; count < 6 && std::getline(manifest, line);)
        if (line.starts_with("jpeg_") && line.find("\timage\tpixels ") != std::string::npos) {
            const std::string name = line.substr(0, line.find('\t'));
            fs::copy_file(corpus() / name, root / "class" / name);
            ++count;
        }
}

using Samples = std::vector<std::vector<std::byte>>;

/// All samples in order.
Samples drawn(const ImageFolder& images) {
    Recorder recorder;
    Runtime runtime{{.max_threads = 2}, recorder};
    auto recipe = images | decode_image | CenterCrop{8, 8};
    const SequentialSampler order{images.size()};
    DataLoader loader{
        runtime, recipe, order, {.batch_size = 1, .num_workers = 1, .read_concurrency = 0, .read_retries = 0}};
    Samples samples;
    auto pass = loader.epoch(0);
    while (std::optional<Batch> batch = pass.next_blocking())
        samples.emplace_back(batch->data().begin(), batch->data().end());
    return samples;
}

Ledger without_times(Ledger ledger) {
    ledger.facts.clear();
    ledger.host.clear();
    return ledger;
}

}   // namespace

BOOST_AUTO_TEST_SUITE(file_faults)

BOOST_AUTO_TEST_CASE(a_loader_gives_every_sample_or_an_error) {
    const test::TemporaryFolder folder;
    make_images(folder.path());
    with_each_failure("loader", [&] { return drawn(ImageFolder{folder.path()}); });
}

BOOST_AUTO_TEST_CASE(shards_are_packed_and_read_whole_or_not_at_all) {
    const test::TemporaryFolder folder;
    make_images(folder / "images");
    const ImageFolder images{folder / "images"};
    const std::vector<std::uint64_t> order{0, 1, 2, 3, 4, 5};
    for (const TarCompression compression : {TarCompression::none, TarCompression::gzip, TarCompression::zstd}) {
        const auto read = [&](const fs::path& shards) {
            const TarShards all{shards.string()};
            Samples files(all.size());
            for (std::size_t i = 0; i < all.size(); ++i)
                all.read(i, files[i]);
            return files;
        };
        with_each_failure("packing", [&] {
            fs::remove_all(folder / "out");
            (void)pack_image_folder(images, order, {.out = folder / "out", .compression = compression});
            return read(folder / "out");
        });
        with_each_failure("shards", [&] { return read(folder / "out"); });
    }
}

BOOST_AUTO_TEST_CASE(arrays_are_read_whole_or_not_at_all) {
    std::ifstream manifest{corpus() / "manifest.tsv"};
    for (std::string line; std::getline(manifest, line);)
        if (line.find("\tnpy\trows ") != std::string::npos)
            with_each_failure(
                "npy", [&] { return npy(corpus() / line.substr(0, line.find('\t'))).size(); },
                line.find("gz") == std::string::npos);   // zlib loses what it had read
}

BOOST_AUTO_TEST_CASE(a_checkpoint_is_the_old_or_the_new_one) {
    const test::TemporaryFolder folder;
    const fs::path file = folder / "checkpoint";
    const auto value_in = [&] { return Checkpoint::read(file).integer("value"); };
    Checkpoint before, after;
    before.set_integer("value", 1);
    after.set_integer("value", 2);
    const std::uint64_t synced = faults::fsyncs();
    before.write(file);
    BOOST_TEST(faults::fsyncs() == synced + 2);   // it is on the disk before it has its name, and then its folder is
    for (const int error : errors)
        for (std::uint64_t nth = 1;; ++nth) {
            before.write(file);
            faults::fail_call(nth, error);
            bool written = false;
            try {
                after.write(file);
                written = true;
            } catch (const CheckpointError&) {
            }
            const bool failed = faults::fail_no_call();
            BOOST_TEST(value_in() == (written ? 2 : 1));
            BOOST_TEST((fs::directory_iterator { folder.path() } -> path() == file));
            if (!failed)
                break;
        }
    with_each_failure("reading a checkpoint", value_in);
}

BOOST_AUTO_TEST_CASE(a_recording_that_cannot_be_written_costs_no_row_of_the_ledger) {
    const test::TemporaryFolder folder;
    const fs::path file = folder / "run.pftrace";
    const auto record = [&](std::uint32_t steps) {
        Recorder recorder{file, {.limit_bytes = 40'000, .ledger_bytes = 0, .host_period = {}}};
        for (std::uint32_t i = 0; i < steps; ++i)
            recorder.push(StepRow{.step = i,
                                  .batch = i,
                                  .size = 1,
                                  .draw_begin_ns = 1000 + 10 * i,
                                  .draw_ns = 5,
                                  .batch_ns = 5,
                                  .loss = {},
                                  .spans = {}},
                          {});
        recorder.finish();
        const Ledger ledger = recorder.ledger();
        BOOST_TEST(ledger.steps.size() + ledger.folded.steps == steps);
        return recorder.state().error;
    };
    for (const int error : errors)
        for (std::uint64_t nth = 1;; ++nth) {
            (void)record(7);
            faults::fail_call(nth, error);
            std::optional<std::string> said;
            try {
                said = record(800);
            } catch (const std::system_error&) {   // the file cannot be opened
            }
            const bool failed = faults::fail_no_call();
            // Whatever happened, there is a recording: the new one, its beginning, or the old one.
            const ReadTrace read = read_trace(file);
            BOOST_TEST(!read.damaged, read.warning);
            const std::uint64_t steps = read.ledger.steps.size() + read.ledger.folded.steps;
            if (!said)
                BOOST_TEST(steps == 7u);
            else
                BOOST_TEST((said->empty() ? steps == 800u : steps < 800u), *said << ": " << steps << " steps");
            if (error == EINTR || error == 0)
                BOOST_TEST((said == ""), "call " << nth << " with " << error);
            if (!failed)
                break;
        }
    (void)record(800);
    with_each_failure("reading a recording", [&] { return without_times(read_trace(file).ledger); });
}

BOOST_AUTO_TEST_SUITE_END()
