#include <drawpoint/instrumentation/export/file.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <ostream>
#include <stdexcept>
#include <streambuf>
#include <system_error>

#include <fmt/format.h>
#include <zlib.h>

#include <drawpoint/instrumentation/export/chrome.hpp>
#include <drawpoint/instrumentation/export/csv.hpp>
#include <drawpoint/instrumentation/export/folded.hpp>
#include <drawpoint/instrumentation/export/json.hpp>
#include <drawpoint/instrumentation/export/pprof.hpp>
#include <drawpoint/instrumentation/export/speedscope.hpp>
#include <drawpoint/instrumentation/export/xplane.hpp>

#include <drawpoint/instrumentation/detail/replaced_file.hpp>

namespace drawpoint {
namespace {

namespace fs = std::filesystem;

struct FormatRow {
    ExportFormat format;
    std::string_view name, extension;
};

constexpr std::array<FormatRow, export_format_count> formats{{
    {ExportFormat::chrome, "chrome", ".pt.trace.json"},
    {ExportFormat::speedscope, "speedscope", ".speedscope.json"},
    {ExportFormat::folded, "folded", ".folded"},
    {ExportFormat::pprof, "pprof", ".pb.gz"},
    {ExportFormat::csv, "csv", ".csv"},
    {ExportFormat::json, "json", ".ledger.json"},
    {ExportFormat::xplane, "xplane", ".xplane.pb"},
}};

[[noreturn]] void fail(int error, const fs::path& file) {
    throw std::system_error(error, std::generic_category(), file.string());
}

/// Writes to an open file, optionally compressed. Keeps the first error. Owns the descriptor.
class FileSink final : public std::streambuf {
public:
    FileSink(int fd, bool gzip) : fd_{fd}, gzip_{gzip ? gzdopen(fd, "wb6") : nullptr} {
        if (gzip && !gzip_) {
            ::close(fd);
            throw std::bad_alloc{};
        }
        setp(buffer_.data(), buffer_.data() + buffer_.size());
    }
    FileSink(const FileSink&) = delete;
    FileSink& operator=(const FileSink&) = delete;
    ~FileSink() override { (void)close(); }

    /// Closes the file and returns the first error, or 0. Idempotent.
    int close() noexcept {
        if (fd_ >= 0) {
            spill();
            errno = 0;
            const bool closed = gzip_ ? gzclose_w(gzip_) == Z_OK : ::close(fd_) == 0;
            if (!closed && error_ == 0)
                error_ = errno != 0 ? errno : EIO;
            fd_ = -1;
        }
        return error_;
    }

protected:
    int_type overflow(int_type next) override {
        if (!spill())
            return traits_type::eof();
        if (!traits_type::eq_int_type(next, traits_type::eof()))
            sputc(traits_type::to_char_type(next));
        return traits_type::not_eof(next);
    }
    int sync() override { return spill() ? 0 : -1; }

private:
    bool spill() noexcept {
        const char* at = pbase();
        while (error_ == 0 && at < pptr()) {
            errno = 0;
            const auto written = gzip_ ? gzwrite(gzip_, at, static_cast<unsigned>(pptr() - at))
                                       : ::write(fd_, at, static_cast<std::size_t>(pptr() - at));
            if (written > 0)
                at += written;
            else if (errno != EINTR)
                error_ = errno != 0 ? errno : EIO;
        }
        setp(buffer_.data(), buffer_.data() + buffer_.size());
        return error_ == 0;
    }

    int fd_;
    gzFile gzip_;
    int error_ = 0;
    std::array<char, 1u << 16> buffer_;
};

/// Writes to an open file and closes it, also if `write` throws.
void write_to(int fd, const fs::path& file, bool gzip, const std::function<void(std::ostream&)>& write) {
    FileSink sink{fd, gzip};
    std::ostream stream{&sink};
    try {
        write(stream);
    } catch (...) {
        if (const int error = sink.close(); error != 0)   // an error of the file came first
            fail(error, file);
        throw;
    }
    const bool whole = stream.good();
    if (const int error = sink.close(); error != 0 || !whole)
        fail(error != 0 ? error : EIO, file);
}

}   // namespace

std::string_view name_of(ExportFormat format) noexcept { return formats[static_cast<std::size_t>(format)].name; }

std::optional<ExportFormat> export_format(std::string_view name) noexcept {
    const auto found =
        std::find_if(formats.begin(), formats.end(), [&](const FormatRow& row) { return row.name == name; });
    return found == formats.end() ? std::nullopt : std::optional{found->format};
}

std::string_view extension_of(ExportFormat format) noexcept {
    return formats[static_cast<std::size_t>(format)].extension;
}

void write_export(const Ledger& ledger, ExportFormat format, std::ostream& out, std::string_view trace_name) {
    switch (format) {
    case ExportFormat::chrome: return write_chrome_trace(ledger, out, {.trace_name = trace_name});
    case ExportFormat::speedscope: return write_speedscope(ledger, out);
    case ExportFormat::folded: return write_folded(ledger, out);
    case ExportFormat::pprof: return write_pprof(ledger, out);
    case ExportFormat::csv: return write_csv_steps(ledger, out);
    case ExportFormat::json: return write_json_ledger(ledger, out);
    case ExportFormat::xplane: return write_xplane(ledger, out);
    }
}

void export_file(const Ledger& ledger, ExportFormat format, const fs::path& file) {
    const bool gzip = format != ExportFormat::pprof && file.extension() == ".gz";
    const std::string name = file.string();
    write_file_whole(file, gzip, [&](std::ostream& out) { write_export(ledger, format, out, name); });
}

void write_file_whole(const fs::path& file, bool gzip, const std::function<void(std::ostream&)>& write) {
    std::error_code unknown;
    const fs::file_status before = fs::status(file, unknown);
    if (fs::exists(before) && !fs::is_regular_file(before)) {
        const int fd = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
        if (fd < 0)
            fail(errno, file);
        return write_to(fd, file, gzip, write);
    }
    ReplacedFile replaced{file};
    const int fd = ::fcntl(replaced.number(), F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        fail(errno, file);
    write_to(fd, file, gzip, write);
    if (const int error = replaced.commit(); error != 0)
        fail(error, file);
}

fs::path tensorboard_trace_file(const fs::path& folder, std::string_view worker_name, bool use_gzip) {
    std::error_code error;
    if (!fs::is_directory(folder, error)) {
        fs::create_directories(folder, error);
        if (!fs::is_directory(folder, error))
            throw std::runtime_error(fmt::format("Can't create directory: {}", folder.string()));
    }
    std::string worker{worker_name};
    if (worker.empty()) {
        std::array<char, 256> host{};
        (void)::gethostname(host.data(), host.size() - 1);
        worker = fmt::format("{}_{}", host.data(), ::getpid());
    }
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return folder / fmt::format("{}.{}.pt.trace.json{}", worker,
                                std::chrono::duration_cast<std::chrono::nanoseconds>(now).count(),
                                use_gzip ? ".gz" : "");
}

}   // namespace drawpoint
