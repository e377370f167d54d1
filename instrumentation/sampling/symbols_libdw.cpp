#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <new>
#include <unordered_map>

#include <drawpoint/instrumentation/sampling/symbols.hpp>
#include "instrumentation/sampling/demangled.hpp"

namespace drawpoint {
namespace {

/// An address range that one entry of the debug information describes.
struct Range {
    Dwarf_Addr begin = 0, end = 0;
    Dwarf_Die die{};
    bool inlined = false;
};

template <class To>
void each_range(Dwarf_Die& die, To&& to) {
    Dwarf_Addr base = 0, begin = 0, end = 0;
    for (ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &begin, &end)) > 0;)
        to(begin, end);
}

/// A compilation unit's functions and the calls inlined into them, outer before inner.
struct Unit {
    Dwarf_Die die{};
    std::vector<Range> functions;
    Dwarf_Files* files = nullptr;
    std::size_t file_count = 0;

    explicit Unit(const Dwarf_Die& unit) : die{unit} {
        add_children(die);
        if (dwarf_getsrcfiles(&die, &files, &file_count) != 0)
            file_count = 0;
    }

    void add_children(Dwarf_Die& parent) {
        Dwarf_Die child;
        if (dwarf_child(&parent, &child) != 0)
            return;
        do {
            const int tag = dwarf_tag(&child);
            switch (tag) {
            case DW_TAG_subprogram:
            case DW_TAG_inlined_subroutine: {
                const std::size_t before = functions.size();
                each_range(child, [&](Dwarf_Addr begin, Dwarf_Addr end) {
                    functions.push_back({begin, end, child, tag == DW_TAG_inlined_subroutine});
                });
                if (functions.size() == before)   // a declaration, or the abstract origin of inlined instances
                    break;
                [[fallthrough]];
            }
            case DW_TAG_lexical_block:
            case DW_TAG_namespace:
            case DW_TAG_module:
            case DW_TAG_structure_type:
            case DW_TAG_class_type:
            case DW_TAG_union_type: add_children(child); break;
            default: break;
            }
        } while (dwarf_siblingof(&child, &child) == 0);
    }

    [[nodiscard]] std::string file(Dwarf_Die& call) const {
        Dwarf_Attribute attribute;
        Dwarf_Word index = 0;
        if (dwarf_formudata(dwarf_attr(&call, DW_AT_call_file, &attribute), &index) != 0 || index >= file_count)
            return {};
        const char* const name = dwarf_filesrc(files, index, nullptr, nullptr);
        return name != nullptr ? name : "";
    }
};

std::uint32_t call_line_of(Dwarf_Die& call) {
    Dwarf_Attribute attribute;
    Dwarf_Word line = 0;
    return dwarf_formudata(dwarf_attr(&call, DW_AT_call_line, &attribute), &line) == 0
               ? static_cast<std::uint32_t>(line)
               : 0;
}

std::string name_of(Dwarf_Die& function) {
    for (const unsigned name : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name}) {
        Dwarf_Attribute attribute;
        if (const char* const text = dwarf_formstring(dwarf_attr_integrate(&function, name, &attribute)))
            return demangled(text);
    }
    const char* const text = dwarf_diename(&function);
    return text != nullptr ? demangled(text) : "";
}

/// Symbols and debug information of one module (the program or a shared object) of the process.
class Module {
public:
    explicit Module(Dwfl_Module* module) : module_{module} {
        const char* file = nullptr;
        const char* const name = dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, &file, nullptr);
        name_ = file_name_of(file != nullptr ? file : name != nullptr ? name : "");
        read_symbols();
        read_units();
    }

    std::vector<Frame> frames_of(Dwarf_Addr address) {
        std::vector<Frame> frames;
        Frame place;
        if (Unit* const unit = unit_of(address - bias_)) {
            place = place_of(*unit, address - bias_);
            add_frames(*unit, address - bias_, place, frames);
        }
        const std::string symbol = symbol_of(address);
        if (frames.empty())   // no debug information, or line tables alone
            frames.push_back({.function = symbol.empty() ? "[" + name_ + "]" : symbol,
                              .file = place.line != 0 ? place.file : name_,
                              .line = place.line});
        else if (!symbol.empty())   // the symbol has the parameters, which scarce debug information lacks
            frames.back().function = symbol;
        return frames;
    }

private:
    struct Symbol {
        Dwarf_Addr begin = 0, end = 0;
        const char* name = nullptr;
    };
    struct UnitRange {
        Dwarf_Addr begin = 0, end = 0;
        Dwarf_Die die{};
    };

    void read_symbols() {
        const int count = dwfl_module_getsymtab(module_);
        for (int i = 0; i < count; ++i) {
            GElf_Sym symbol;
            GElf_Addr address = 0;
            GElf_Word section = 0;
            const char* const name = dwfl_module_getsym_info(module_, i, &symbol, &address, &section, nullptr, nullptr);
            const auto type = GELF_ST_TYPE(symbol.st_info);
            if (name == nullptr || *name == '\0' || section == SHN_UNDEF || section == SHN_ABS ||
                (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
                continue;
            symbols_.push_back({address, address + symbol.st_size, name});
        }
        // Among symbols at one address the largest sorts last and wins. One without a size extends up to the next.
        std::stable_sort(symbols_.begin(), symbols_.end(), [](const Symbol& a, const Symbol& b) {
            return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
        });
        symbols_.shrink_to_fit();
    }

    /// Whether debug information is in a separate file, as for system libraries. Then only its symbols are read: the
    /// rest costs too much for what it adds.
    [[nodiscard]] bool has_separate_file() const {
        const char* file = nullptr;
        dwfl_module_info(module_, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, &file);
        return file != nullptr;
    }

    void read_units() {
        if (has_separate_file() || dwfl_module_getdwarf(module_, &bias_) == nullptr || has_separate_file())
            return;
        Dwarf_Addr bias = 0;
        for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(module_, unit, &bias)) != nullptr;) {
            Dwarf_Die die = *unit;
            each_range(die, [&](Dwarf_Addr begin, Dwarf_Addr end) { ranges_.push_back({begin, end, die}); });
        }
        std::sort(ranges_.begin(), ranges_.end(),
                  [](const UnitRange& a, const UnitRange& b) { return a.begin < b.begin; });
    }

    Unit* unit_of(Dwarf_Addr address) {
        auto place = std::upper_bound(ranges_.begin(), ranges_.end(), address,
                                      [](Dwarf_Addr at, const UnitRange& range) { return at < range.begin; });
        if (place == ranges_.begin() || address >= (--place)->end)
            return nullptr;
        const Dwarf_Off key = dwarf_dieoffset(&place->die);
        return &units_.try_emplace(key, place->die).first->second;
    }

    std::string symbol_of(Dwarf_Addr address) const {
        auto place = std::upper_bound(symbols_.begin(), symbols_.end(), address,
                                      [](Dwarf_Addr at, const Symbol& symbol) { return at < symbol.begin; });
        if (place == symbols_.begin())
            return {};
        --place;
        return address < place->end || place->begin == place->end ? demangled(place->name) : "";
    }

    /// File and line by the unit's line table; empty and 0 if it does not know.
    static Frame place_of(Unit& unit, Dwarf_Addr address) {
        Dwarf_Line* const line = dwarf_getsrc_die(&unit.die, address);
        int number = 0;
        if (line == nullptr || dwarf_lineno(line, &number) != 0)
            return {};
        const char* const source = dwarf_linesrc(line, nullptr, nullptr);
        return {.file = source != nullptr ? source : "", .line = static_cast<std::uint32_t>(number)};
    }

    static void add_frames(Unit& unit, Dwarf_Addr address, const Frame& place, std::vector<Frame>& frames) {
        std::vector<Range*> around;
        for (Range& range : unit.functions) {
            if (range.begin <= address && address < range.end)
                around.push_back(&range);
        }
        std::string file = place.file;
        std::uint32_t at = place.line;
        for (std::size_t i = around.size(); i-- > 0;) {
            Dwarf_Die& die = around[i]->die;
            int declared = 0;
            dwarf_decl_line(&die, &declared);
            const char* const declared_in = dwarf_decl_file(&die);
            frames.push_back({.function = name_of(die),
                              .file = declared_in != nullptr ? declared_in : file,
                              .line = at,
                              .first_line = static_cast<std::uint32_t>(declared),
                              .inlined = around[i]->inlined});
            if (!around[i]->inlined)
                return;
            file = unit.file(die);
            at = call_line_of(die);
        }
    }

    Dwfl_Module* module_;
    std::string name_;
    Dwarf_Addr bias_ = 0;
    std::vector<Symbol> symbols_;
    std::vector<UnitRange> ranges_;
    std::unordered_map<Dwarf_Off, Unit> units_;
};

}   // namespace

struct Symbols::Impl {
    Impl() : dwfl{dwfl_begin(&callbacks)} {
        if (dwfl == nullptr)
            throw std::bad_alloc{};
        report();
    }
    ~Impl() { dwfl_end(dwfl); }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    void report() {
        reported = std::chrono::steady_clock::now();
        dwfl_report_begin_add(dwfl);
        dwfl_linux_proc_report(dwfl, getpid());
        dwfl_report_end(dwfl, nullptr, nullptr);
    }

    char* debug_path = nullptr;   // the library's default directories; never the network
    Dwfl_Callbacks callbacks{.find_elf = dwfl_linux_proc_find_elf,
                             .find_debuginfo = dwfl_build_id_find_debuginfo,
                             .section_address = nullptr,
                             .debuginfo_path = &debug_path};
    Dwfl* dwfl;
    std::chrono::steady_clock::time_point reported;
    std::map<Dwfl_Module*, Module> modules;
};

Symbols::Symbols() : impl_{std::make_unique<Impl>()} {}
Symbols::~Symbols() = default;

std::vector<Frame> Symbols::frames_of(std::uint64_t address) {
    Dwfl_Module* module = dwfl_addrmodule(impl_->dwfl, address);
    if (module == nullptr && std::chrono::steady_clock::now() - impl_->reported > std::chrono::seconds{1}) {
        impl_->report();   // the module may have been loaded since
        module = dwfl_addrmodule(impl_->dwfl, address);
    }
    if (module == nullptr)
        return {{.function = "[unknown]"}};
    return impl_->modules.try_emplace(module, module).first->second.frames_of(address);
}

std::string_view Symbols::library() noexcept { return "libdw"; }

}   // namespace drawpoint
