#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <drawpoint/instrumentation/ledger/ledger.hpp>

namespace drawpoint {

/// What a thread was doing at one moment, as far as the ledger's rows say. Pointers are into the ledger.
struct Doing {
    const OperatorRow* region = nullptr;   ///< the innermost `user_annotation` open on the thread but "ProfilerStep#n"
    const OperatorRow* op = nullptr;       ///< the innermost operator or region open on it
    const StepRow* step = nullptr;         ///< loop: the step at hand, its `between` included
    const PassRow* pass = nullptr;         ///< loop: outside every step, the pass the piece belongs to
    std::optional<Span> span;              ///< loop: the piece of time
    std::optional<Action>
        action;   ///< loop: the action the piece counts in; of a draw's or a batch's pieces the inner one
    const SampleRow* sample = nullptr;   ///< worker: the sample it worked on
    std::string_view stage;              ///< worker: the stage of it, or "collate": of a batch
};

/// The action that a piece of a step counts in: draw, between, or of the batch's actions the inner one that it lies in, else
/// `callbacks` or `other`. O(pieces of the step). Never allocates.
[[nodiscard]] Action action_of_piece(const Ledger&, const StepRow&, const SpanRow&) noexcept;

/// Looks up what threads were doing. Built once per ledger, O(rows log rows); the ledger outlives it and stays as it is.
/// Rows of one thread are joined by its system thread id. A thread is the loop's when a `ThreadRow` of that id is named "loop",
/// and worker n's when one is named "worker n". Any thread may ask at the same time.
class Attribution {
public:
    explicit Attribution(const Ledger&);

    /// What `thread` (of `Ledger::threads`) was doing at `at_ns`. O(log rows + depth of open regions). Never allocates.
    [[nodiscard]] Doing at(std::uint32_t thread, std::int64_t at_ns) const noexcept;

    /// The name of what it did: the innermost region's that was opened during the step at hand or outside every step; else of the loop "train.forward", "valid.draw", "train.between", "fit", "epoch";
    /// else the worker's stage; else "" (nothing known). The same text for the same thing, over the whole ledger.
    [[nodiscard]] std::string action_of(const Doing&) const;

    /// The thread's name: "loop" or "worker n" where a row says so, else the system's name for it, else its number.
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
    struct Open {   // an operator, and the one it stands in
        const OperatorRow* row = nullptr;
        std::int64_t end_ns = 0;
        std::uint32_t parent = nothing;
    };
    struct Thread {
        bool loop = false;
        std::uint32_t worker = nothing;
        std::string name;
        std::vector<Open> open;   // by begin, longest first
    };

    void add_threads();
    void add_operators();
    void add_pieces();
    void add_stages();

    const Ledger* ledger_;
    std::vector<std::uint32_t> thread_of_;   // by ThreadRow: of `threads_`
    std::vector<Thread> threads_;
    std::vector<Piece> pieces_;                 // by begin
    std::vector<std::vector<Stage>> workers_;   // by begin each
};

}   // namespace drawpoint
