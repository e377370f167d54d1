// A compiler canary: shows what this compiler does with temporaries of an awaited expression. GCC 12 destroys some of
// them twice, which is why the coroutine rules of CONTRIBUTING.md exist. The unsafe forms must behave as recorded for
// the compiler; the safe forms must be right on every compiler. It does not use the library.
#include <coroutine>
#include <cstdio>
#include <exception>
#include <set>
#include <utility>
#include <vector>

namespace {

// Keeps the addresses of all live objects, so that a second destruction is noticed.
struct Book {
    std::set<const void*> alive;
    int wrong = 0;

    void born(const void* where) { wrong += alive.insert(where).second ? 0 : 1; }
    void gone(const void* where) { wrong += alive.erase(where) == 1 ? 0 : 1; }
    void used(const void* where) { wrong += alive.contains(where) ? 0 : 1; }
};
Book book;

struct Tracked {
    int value;
    explicit Tracked(int v) : value{v} { book.born(this); }
    Tracked(const Tracked& other) : value{other.value} { book.used(&other), book.born(this); }
    Tracked(Tracked&& other) noexcept : value{other.value} { book.used(&other), book.born(this); }
    Tracked& operator=(const Tracked&) = default;
    ~Tracked() { book.gone(this); }
    int use() const {
        book.used(this);
        return value;
    }
};

// A minimal lazy task: whoever awaits it starts it, and nobody else resumes it. A task may suspend once by itself.
template <class T>
struct Task {
    struct promise_type;
    using Handle = std::coroutine_handle<promise_type>;
    struct promise_type {
        std::coroutine_handle<> awaiting = std::noop_coroutine();
        std::vector<T> result;
        Task get_return_object() { return Task{Handle::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        auto final_suspend() noexcept {
            struct Back {
                explicit Back() {}
                bool await_ready() noexcept { return false; }
                std::coroutine_handle<> await_suspend(Handle done) noexcept { return done.promise().awaiting; }
                void await_resume() noexcept {}
            };
            return Back{};
        }
        void return_value(T value) { result.push_back(std::move(value)); }
        void unhandled_exception() { std::terminate(); }
    };

    explicit Task(Handle h) : handle{h} {}
    Task(Task&& other) noexcept : handle{std::exchange(other.handle, nullptr)} {}
    ~Task() {
        if (handle)
            handle.destroy();
    }
    bool await_ready() { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> from) {
        handle.promise().awaiting = from;
        return handle;
    }
    T await_resume() { return std::move(handle.promise().result.at(0)); }

    Handle handle;
};

std::coroutine_handle<> parked;
struct Park {
    explicit Park() {}
    bool await_ready() { return false; }
    void await_suspend(std::coroutine_handle<> here) { parked = here; }
    void await_resume() {}
};

struct Aggregate {
    Tracked a, b;
};
struct WithConstructor {
    Tracked a, b;
    WithConstructor(Tracked first, Tracked second) : a{std::move(first)}, b{std::move(second)} {}
};
struct AggregateAwaiter {
    Tracked held;
    bool await_ready() { return false; }
    void await_suspend(std::coroutine_handle<> here) { parked = here; }
    int await_resume() { return held.use(); }
};
struct Awaiter {
    Tracked held;
    explicit Awaiter(Tracked what) : held{std::move(what)} {}
    bool await_ready() { return false; }
    void await_suspend(std::coroutine_handle<> here) { parked = here; }
    int await_resume() { return held.use(); }
};

template <class F>
Task<int> call(F f) {
    Park park;
    co_await park;
    co_return f();
}
template <class Pair>
Task<int> sum(Pair pair) {
    Park park;
    co_await park;
    co_return pair.a.use() + pair.b.use();
}
Task<Tracked> make(int value) {
    Park park;
    co_await park;
    Tracked made{value};
    co_return made;
}

// Unsafe forms. Each returns 3 if its temporaries live as long as the language says.
Task<int> closure_in_operand() {
    Tracked captured{3};
    const int got = co_await call([captured] { return captured.use(); });
    co_return got;
}
Task<int> aggregate_in_operand() {
    const int got = co_await sum(Aggregate{Tracked{1}, Tracked{2}});
    co_return got;
}
Task<int> aggregate_awaiter() {
    const int got = co_await AggregateAwaiter{Tracked{3}};
    co_return got;
}
Task<int> ternary(bool first) {
    Tracked got = first ? co_await make(3) : co_await make(4);
    co_return got.use();
}
Task<int> unsafe_ternary() {
    auto task = ternary(true);
    const int got = co_await std::move(task);
    co_return got;
}

// The same in safe forms.
Task<int> named_closure() {
    Tracked captured{3};
    auto f = [captured] { return captured.use(); };
    const int got = co_await call(std::move(f));
    co_return got;
}
Task<int> named_aggregate() {
    Aggregate both{Tracked{1}, Tracked{2}};
    const int got = co_await sum(std::move(both));
    co_return got;
}
Task<int> type_with_a_constructor() {
    WithConstructor both{Tracked{1}, Tracked{2}};
    const int got = co_await sum(std::move(both));
    co_return got;
}
Task<int> awaiter_with_a_constructor() {
    const int got = co_await Awaiter(Tracked(3));
    co_return got;
}
Task<int> branches(bool first) {
    if (first) {
        Tracked got = co_await make(3);
        co_return got.use();
    }
    Tracked got = co_await make(4);
    co_return got.use();
}
Task<int> safe_branches() {
    auto task = branches(true);
    const int got = co_await std::move(task);
    co_return got;
}
Task<int> loop_that_breaks() {
    int rounds = 0;
    for (;;) {
        Tracked left = co_await make(3 - rounds);
        if (left.use() == 0)
            break;
        ++rounds;
    }
    co_return rounds;
}

// Resumes the coroutine at most `resumptions` times (a lost coroutine would hang), then destroys it. Returns whether
// its temporaries were handled correctly.
bool is_right(Task<int> (*form)(), int resumptions) {
    book = {};
    bool finished = false;
    int result = 0;
    {
        Task<int> task = form();
        parked = nullptr;
        task.handle.resume();
        for (int i = 0; i < resumptions && parked; ++i)
            std::exchange(parked, nullptr).resume();
        finished = task.handle.done();
        if (finished)
            result = task.handle.promise().result.at(0);
    }
    return book.wrong == 0 && book.alive.empty() && (!finished || result == 3) && (finished || resumptions < 100);
}

bool is_right_however_long_it_runs(Task<int> (*form)()) {
    for (const int resumptions : {0, 1, 2, 100})
        if (!is_right(form, resumptions))
            return false;
    return true;
}

struct Form {
    const char* name;
    Task<int> (*run)();
    bool safe;
};
constexpr Form forms[] = {
    {"co_await f([capture] {...})", closure_in_operand, false},
    {"co_await f(Aggregate{...})", aggregate_in_operand, false},
    {"co_await AggregateAwaiter{...}", aggregate_awaiter, false},
    {"c ? co_await a() : co_await b()", unsafe_ternary, false},
    {"a closure named first, then moved in", named_closure, true},
    {"an aggregate named first, then moved in", named_aggregate, true},
    {"a type with a constructor, named first", type_with_a_constructor, true},
    {"an awaiter with a constructor", awaiter_with_a_constructor, true},
    {"if and else", safe_branches, true},
    {"for (;;) with a break", loop_that_breaks, true},
};

// Recorded behaviour: GCC 12 gets every unsafe form wrong, Clang 19 none. Nothing is recorded for other compilers.
enum class Record { wrong, right, none };
#if defined(__clang__)
constexpr Record record = __clang_major__ == 19 ? Record::right : Record::none;
constexpr const char* compiler = "Clang " __clang_version__;
#else
constexpr Record record = __GNUC__ == 12 ? Record::wrong : Record::none;
constexpr const char* compiler = "GCC " __VERSION__;
#endif

}   // namespace

int main() {
    int surprises = 0, unsafe_right = 0, unsafe = 0;
    std::printf("%s\n", compiler);
    for (const Form& form : forms) {
        const bool right = is_right_however_long_it_runs(form.run);
        const bool expected = form.safe || record == Record::right;
        const bool surprise = right != expected && (form.safe || record != Record::none);
        std::printf("%s form %-42s %s%s\n", form.safe ? "safe  " : "unsafe", form.name, right ? "right" : "WRONG",
                    surprise ? "  not as recorded" : "");
        surprises += surprise;
        unsafe += !form.safe;
        unsafe_right += !form.safe && right;
    }
    if (record == Record::none && unsafe_right == unsafe)
        std::printf("This compiler has lost GCC 12's bug: once GCC 12 is no longer supported, rule C3 may go.\n");
    if (record == Record::none && unsafe_right < unsafe)
        std::printf("This compiler still has GCC 12's bug in %d of %d forms: rule C3 is needed.\n",
                    unsafe - unsafe_right, unsafe);
    return surprises == 0 ? 0 : 1;
}
