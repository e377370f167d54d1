#include "rows_file.hpp"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace drawpoint::bench {

RowsFile::RowsFile(const Workload& workload) : values_{workload.values()} {
    const std::string path = workload.plan / "rows.f32";
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0)
        throw std::system_error{errno, std::generic_category(), path};
    const std::size_t values = workload.items * values_;
    void* memory = mmap(nullptr, values * sizeof(float), PROT_READ, MAP_SHARED | MAP_POPULATE, file, 0);
    close(file);
    if (memory == MAP_FAILED)
        throw std::system_error{errno, std::generic_category(), path};
    rows_ = {static_cast<const float*>(memory), values};
}

RowsFile::~RowsFile() { munmap(const_cast<float*>(rows_.data()), rows_.size_bytes()); }

}   // namespace drawpoint::bench
