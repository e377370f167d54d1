#include "model/interleavings.hpp"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

namespace drawpoint::model {
namespace {

constexpr std::size_t stack_bytes = 64u << 10, most_stale = 1;

bool acquires(std::memory_order order) noexcept {
    return order != std::memory_order::relaxed && order != std::memory_order::release;
}
bool releases(std::memory_order order) noexcept {
    return order == std::memory_order::release || order == std::memory_order::acq_rel ||
           order == std::memory_order::seq_cst;
}

}   // namespace

void Clock::join(const Clock& other) noexcept {
    for (std::size_t i = 0; i < times_.size(); ++i)
        times_[i] = std::max(times_[i], other.times_[i]);
}

/// Explores depth first. Of orders that differ only in operations that do not affect each other, one is run ("sleep
/// sets", Godefroid 1996).
class Explorer {
public:
    Explorer(const std::function<void(Run&)>& scenario, const Weakened* weakened, Found& found)
        : scenario_{scenario}, weakened_{weakened}, found_{found} {
        for (auto& stack : stacks_)
            stack = std::make_unique_for_overwrite<char[]>(stack_bytes);
    }

    void explore(std::uint64_t most_runs) {
        do {
            if (found_.runs == most_runs)
                return;
            ++found_.runs;
            run();
        } while (found_.violation.empty() && next_path());
        found_.complete = found_.violation.empty();
    }

private:
    friend class Run;

    enum class State : std::uint8_t { none, ready, asleep, ended };
    struct Thread {
        bool started = false;
        jmp_buf place;   // ucontext begins it; setjmp and longjmp, which make no system call, switch
        std::function<void()> body;
        State state = State::none;
        Location* at = nullptr;   // of its next operation, or where it sleeps
        Run::Kind kind{};
    };
    /// A decision: which thread goes on, or which of `count` values a load reads.
    struct Choice {
        std::size_t chosen = 0, count = 0;                  // count 0: of a thread
        std::uint32_t enabled = 0, asleep = 0, tried = 0;   // sets of threads
    };

    void run();
    bool next_path();
    void step(Location&, Run::Kind);
    void yield();
    void go_on(std::size_t thread);
    std::size_t choose(std::size_t count);
    void fail(std::string what);
    std::memory_order order_at(const std::source_location&, std::memory_order, bool failure = false);
    std::size_t oldest_readable(const Location&, bool sequential) const;
    static void enter(unsigned number);

    const std::function<void(Run&)>& scenario_;
    const Weakened* weakened_;
    Found& found_;
    std::array<std::unique_ptr<char[]>, most_threads> stacks_;
    std::array<Thread, most_threads> threads_;
    std::array<Clock, most_threads> clocks_;
    std::size_t count_ = 1, active_ = 0;   // threads; the running one
    jmp_buf scheduler_;
    std::vector<Choice> path_;
    std::vector<std::size_t> readable_;   // scratch
    std::size_t depth_ = 0;
    bool abandoned_ = false;
    inline static Explorer* current_ = nullptr;
};

void Explorer::run() {
    current_ = this;
    for (Thread& thread : threads_)
        thread = Thread{};
    clocks_ = {};
    for (std::size_t i = 0; i < most_threads; ++i)
        clocks_[i].tick(i);
    count_ = 1;
    active_ = 0;
    depth_ = 0;
    abandoned_ = false;
    Run run{*this};
    Run::current_ = &run;
    scenario_(run);
    for (std::size_t i = 1; i < count_; ++i) {
        clocks_[i].join(clocks_[0]);
        threads_[i].state = State::ready;
        go_on(i);   // to its first operation
    }
    std::uint32_t asleep = 0;   // threads whose next operation has been tried already, to the same effect
    while (!abandoned_) {
        std::uint32_t enabled = 0;
        bool waits = false;
        for (std::size_t i = 1; i < count_; ++i) {
            enabled |= threads_[i].state == State::ready ? 1u << i : 0u;
            waits = waits || threads_[i].state == State::asleep;
        }
        if (enabled == 0) {
            if (waits)
                fail("all threads wait");
            break;
        }
        if (depth_ == path_.size()) {
            if ((enabled & ~asleep) == 0)
                return;
            path_.push_back({.chosen = static_cast<std::size_t>(std::countr_zero(enabled & ~asleep)),
                             .enabled = enabled,
                             .asleep = asleep});
        }
        const Choice& choice = path_[depth_++];
        const Thread& chosen = threads_[choice.chosen];
        asleep = 0;
        for (std::size_t i = 1; i < count_; ++i)
            if (((choice.asleep | choice.tried) >> i & 1) != 0 && i != choice.chosen &&
                (threads_[i].at != chosen.at ||
                 (threads_[i].kind == Run::Kind::read && chosen.kind == Run::Kind::read)))
                asleep |= 1u << i;
        go_on(choice.chosen);
    }
    if (abandoned_)
        return;
    for (std::size_t i = 1; i < count_; ++i)
        clocks_[0].join(clocks_[i]);
    active_ = 0;
    if (run.check_)
        run.check_();
}

bool Explorer::next_path() {
    for (; !path_.empty(); path_.pop_back()) {
        Choice& last = path_.back();
        if (last.count != 0) {
            if (++last.chosen < last.count)
                return true;
            continue;
        }
        last.tried |= 1u << last.chosen;
        if (const std::uint32_t left = last.enabled & ~last.asleep & ~last.tried; left != 0) {
            last.chosen = static_cast<std::size_t>(std::countr_zero(left));
            return true;
        }
    }
    return false;
}

std::size_t Explorer::choose(std::size_t count) {
    if (count <= 1 || active_ == 0)
        return 0;
    if (depth_ == path_.size())
        path_.push_back({.chosen = 0, .count = count});
    return path_[depth_++].chosen;
}

void Explorer::enter(unsigned number) {
    Thread& thread = current_->threads_[number];
    thread.body();
    thread.state = State::ended;
    current_->yield();
}

void Explorer::go_on(std::size_t number) {
    Thread& thread = threads_[number];
    active_ = number;
    if (_setjmp(scheduler_) == 0) {
        if (std::exchange(thread.started, true))
            _longjmp(thread.place, 1);
        ucontext_t begin;
        ::getcontext(&begin);
        begin.uc_stack.ss_sp = stacks_[number].get();
        begin.uc_stack.ss_size = stack_bytes;
        ::makecontext(&begin, reinterpret_cast<void (*)()>(&Explorer::enter), 1, static_cast<unsigned>(number));
        ::setcontext(&begin);
    }
    active_ = 0;
}

void Explorer::yield() {
    if (_setjmp(threads_[active_].place) == 0)
        _longjmp(scheduler_, 1);
}

/// Lets the scheduler decide when the running thread's next operation is carried out.
void Explorer::step(Location& at, Run::Kind kind) {
    if (active_ == 0)
        return;
    threads_[active_].at = &at;
    threads_[active_].kind = kind;
    yield();
}

void Explorer::fail(std::string what) {
    if (found_.violation.empty())
        found_.violation = std::move(what);
    abandoned_ = true;
    if (active_ != 0)
        yield();   // for ever
}

std::memory_order Explorer::order_at(const std::source_location& at, std::memory_order order, bool failure) {
    if (order == std::memory_order::relaxed)
        return order;
    constexpr std::uint_least32_t of_failure = 10'000;
    const Site site{at.file_name(), at.line(), at.column() + (failure ? of_failure : 0)};
    found_.orders.emplace(site, order);
    return weakened_ != nullptr && weakened_->site == site ? weakened_->order : order;
}

std::size_t Explorer::oldest_readable(const Location& of, bool sequential) const {
    if (of.stale[active_] == most_stale)
        return of.stores.size() - 1;
    std::size_t oldest = std::max(of.seen[active_], sequential ? of.last_sequential : 0);
    for (std::size_t i = of.stores.size() - 1; i > oldest; --i)
        if (of.stores[i].made.is_known_to(clocks_[active_]))
            oldest = i;
    return oldest;
}

Found explore(const std::function<void(Run&)>& scenario, const Weakened* weakened, std::uint64_t most_runs) {
    Found found;
    Explorer{scenario, weakened, found}.explore(most_runs);
    return found;
}

// ---- Run ----

void Run::thread(std::function<void()> body) {
    if (impl_->count_ == most_threads)
        throw std::length_error("too many threads");
    impl_->threads_[impl_->count_++].body = std::move(body);
}

void Run::check(bool holds, const char* what) {
    if (!holds)
        impl_->fail(what);
}

const Clock& Run::clock() const noexcept { return impl_->clocks_[impl_->active_]; }

Moment Run::now() { return {impl_->active_, clock().of(impl_->active_)}; }

std::uint64_t Run::load(Location& from, std::memory_order order, const std::source_location& at) {
    order = impl_->order_at(at, order);
    impl_->step(from, Kind::read);
    const std::size_t me = impl_->active_;
    const std::size_t oldest = impl_->oldest_readable(from, order == std::memory_order::seq_cst);
    const std::size_t read = from.stores.size() - 1 - impl_->choose(from.stores.size() - oldest);
    from.seen[me] = read;
    from.stale[me] = read + 1 == from.stores.size() ? 0 : from.stale[me] + 1;
    if (acquires(order))
        impl_->clocks_[me].join(from.stores[read].released);
    impl_->clocks_[me].tick(me);
    return from.stores[read].value;
}

void Run::store(Location& to, std::uint64_t value, std::memory_order order, const std::source_location& at) {
    order = impl_->order_at(at, order);
    impl_->step(to, Kind::write);
    const std::size_t me = impl_->active_;
    Clock& clock = impl_->clocks_[me];
    to.stores.push_back({value, now(), releases(order) ? clock : Clock{}});
    to.seen[me] = to.stores.size() - 1;
    if (order == std::memory_order::seq_cst)
        to.last_sequential = to.seen[me];
    clock.tick(me);
}

std::uint64_t Run::modify(Location& of, const std::function<std::uint64_t(std::uint64_t)>& change,
                          std::memory_order order, const std::source_location& at) {
    order = impl_->order_at(at, order);
    impl_->step(of, Kind::write);
    const std::size_t me = impl_->active_;
    Clock& clock = impl_->clocks_[me];
    const std::uint64_t old = of.stores.back().value;
    Clock released = of.stores.back().released;   // the sequence of a release goes on
    if (acquires(order))
        clock.join(released);
    if (releases(order))
        released.join(clock);
    of.stores.push_back({change(old), now(), released});
    of.seen[me] = of.stores.size() - 1;
    if (order == std::memory_order::seq_cst)
        of.last_sequential = of.seen[me];
    clock.tick(me);
    return old;
}

bool Run::exchange_if(Location& of, std::uint64_t& expected, std::uint64_t desired, std::memory_order success,
                      std::memory_order failure, const std::source_location& at) {
    success = impl_->order_at(at, success);
    failure = impl_->order_at(at, failure, true);
    impl_->step(of, Kind::write);
    const std::size_t me = impl_->active_;
    Clock& clock = impl_->clocks_[me];
    // What it can read: the last value, or an older one that is not the expected one.
    const std::size_t last = of.stores.size() - 1,
                      oldest = impl_->oldest_readable(of, failure == std::memory_order::seq_cst);
    std::vector<std::size_t>& readable = impl_->readable_;
    readable.assign(1, last);
    for (std::size_t i = last; i-- > oldest;)
        if (of.stores[i].value != expected)
            readable.push_back(i);
    const std::size_t read = readable[impl_->choose(readable.size())];
    const std::uint64_t value = of.stores[read].value;
    const bool done = read == last && value == expected;
    of.seen[me] = read;
    of.stale[me] = read == last ? 0 : of.stale[me] + 1;
    if (acquires(done ? success : failure))
        clock.join(of.stores[read].released);
    if (done) {
        Clock released = of.stores[read].released;
        if (releases(success))
            released.join(clock);
        of.stores.push_back({desired, now(), released});
        of.seen[me] = of.stores.size() - 1;
        if (success == std::memory_order::seq_cst)
            of.last_sequential = of.seen[me];
    }
    expected = value;
    clock.tick(me);
    return done;
}

void Run::sleep(Location& at, std::uint64_t value, bool last) {
    impl_->step(at, Kind::write);
    const std::size_t readable = last ? 1 : at.stores.size() - impl_->oldest_readable(at, true);
    if (at.stores[at.stores.size() - 1 - impl_->choose(readable)].value != value)
        return;
    if (impl_->active_ == 0)
        return impl_->fail("the scenario itself waits");
    impl_->threads_[impl_->active_].state = Explorer::State::asleep;
    impl_->yield();
}

void Run::wake(Location& at, std::size_t most) {
    impl_->step(at, Kind::write);
    for (std::size_t i = 1; i < impl_->count_ && most != 0; ++i)
        if (impl_->threads_[i].state == Explorer::State::asleep && impl_->threads_[i].at == &at) {
            impl_->threads_[i].state = Explorer::State::ready;
            --most;
        }
}

}   // namespace drawpoint::model
