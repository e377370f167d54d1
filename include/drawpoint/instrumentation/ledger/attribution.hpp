#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// What a thread was doing at one moment, as far as the ledger's rows show. A *piece* is an interval of the loop's time
/// (SpanRow); the end of a row belongs to the next one. Members marked "loop" are set on the loop's thread only, those
/// marked "worker" on workers only. Pointers and `stage` are valid as long as the ledger.
struct Doing {
    /// The innermost `user_annotation` open on the thread, "ProfilerStep#n" excepted.
    const OperatorRow* region = nullptr;
    const OperatorRow* op = nullptr;   ///< innermost open row of any kind: an operator, an annotation, "ProfilerStep#n"
    const StepRow* step = nullptr;     ///< loop: the current step, including its `between`
    const PassRow* pass = nullptr;     ///< loop: outside every step, the pass that the piece belongs to
    std::optional<Span> span;          ///< loop: the piece of time
    /// Loop: the action that the piece counts in (action_of_piece). Outside every step absent, except
    /// `end_of_data` in the draw that found it.
    std::optional<Action> action;
    const SampleRow* sample = nullptr;   ///< worker: the sample it was working on
    std::string_view stage;              ///< worker: the sample's stage, or "collate" (then `sample` is null)
};

/// The action that a piece of the step counts in: `draw`, `between`, one of the batch's actions (of those that contain
/// the piece, the innermost), `callbacks` or `other`. O(pieces of the step). Never allocates.
[[nodiscard]] Action action_of_piece(const Ledger&, const StepRow&, const SpanRow&) noexcept;

/// Looks up what threads were doing. The constructor takes O(rows log rows) and memory for a copy of the pieces, stages
/// and open times; make it once for many look-ups. The ledger must outlive it and must not change. Thread rows of the
/// host with the same system thread id are taken as one thread; each device stream is one of its own. A host thread is
/// the loop's if one of its rows is named "loop" or its id is the fact `process.loop_tid`, and worker n's if one is
/// named "worker n". Moments in steps and samples of which only totals were kept (Ledger::folded) are unknown. Any
/// thread may query it concurrently.
class Attribution {
public:
    explicit Attribution(const Ledger&);

    /// What `thread` (a position in `Ledger::threads`) was doing at `at_ns`, a time as in the ledger's rows. All
    /// members are empty if that is unknown or there is no such thread. O(log rows + depth of open regions). Never
    /// allocates.
    [[nodiscard]] Doing at(std::uint32_t thread, std::int64_t at_ns) const noexcept;

    /// A name for it: the innermost region's, unless that region was opened before the current step; else, on the
    /// loop's thread, phase and action ("train.forward", "valid.draw") or, outside every step, the pass ("fit",
    /// "epoch"); else the worker's stage; else "" (unknown). Moments of the same activity share a name.
    [[nodiscard]] std::string action_of(const Doing&) const;

    /// "loop", "worker n" or another name that a row gives it, else the system's name for it (the fact
    /// `sampling.thread.TID`), else "thread TID"; "" if there is no such thread. Valid as long as this object.
    [[nodiscard]] std::string_view thread_name(std::uint32_t thread) const noexcept;

private:
    struct Piece {
        std::int64_t begin_ns = 0, end_ns = 0;
        Span span{};
        std::optional<Action> action;
        const StepRow* step = nullptr;
        const PassRow* pass = nullptr;
    };
    struct Stage {
        std::int64_t begin_ns = 0, end_ns = 0;
        const SampleRow* sample = nullptr;
        std::string_view name;
    };
    struct Open {   // an operator and the one around it
        const OperatorRow* row = nullptr;
        std::int64_t end_ns = 0;
        std::uint32_t parent = nothing;
    };
    struct Thread {
        bool loop = false;
        std::uint32_t worker = nothing;
        std::string name;
        std::vector<Open> open;   // sorted by start, longest first
    };

    void add_threads();
    void add_operators();
    void add_pieces();
    void add_stages();

    const Ledger* ledger_;
    std::vector<std::uint32_t> thread_of_;   // by position in `Ledger::threads`: position in `threads_`
    std::vector<Thread> threads_;
    std::vector<Piece> pieces_;                 // sorted by start
    std::vector<std::vector<Stage>> workers_;   // each sorted by start
};

}   // namespace drawpoint
