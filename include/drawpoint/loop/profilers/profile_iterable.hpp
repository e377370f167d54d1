#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <drawpoint/loop/profilers/profiler.hpp>
#include <drawpoint/pipeline/loader/core/batch_source.hpp>

namespace drawpoint {

/// A pass whose draws are timed as an action: each draw alone, without the use of the batch, and also the draw that
/// finds the end or throws. The profiler must outlive it.
template <BatchSource Source>
class ProfiledPass {
public:
    using Batch = typename Source::Batch;
    ProfiledPass(Profiler& profiler, Source source, std::string_view action)
        : profiler_{&profiler}, source_{std::move(source)}, action_{action} {}
    [[nodiscard]] std::optional<std::size_t> size() { return source_.size(); }
    [[nodiscard]] Awaitable<std::optional<Batch>> next() {
        const ProfiledAction timed{*profiler_, action_};
        auto batch = co_await source_.next();
        co_return std::move(batch);
    }
    void drain() noexcept
        requires DrainedSource<Source>
    {
        source_.drain();
    }

private:
    Profiler* profiler_;
    Source source_;
    std::string action_;
};

/// A loader whose passes are `ProfiledPass`es; `fit` accepts it. Loader and profiler must outlive it.
template <EpochSource Loader>
class ProfiledLoader {
public:
    ProfiledLoader(Profiler& profiler, Loader& loader, std::string_view action)
        : profiler_{&profiler}, loader_{&loader}, action_{action} {}
    [[nodiscard]] auto epoch(std::size_t e, EpochOptions options) {
        return ProfiledPass(*profiler_, loader_->epoch(e, options), action_);
    }

private:
    Profiler* profiler_;
    Loader* loader_;
    std::string action_;
};

/// Times the draws from a loader or a pass as `action`: `auto timed = profile_iterable(profiler, loader,
/// "get_train_batch");`.
template <EpochSource Loader>
[[nodiscard]] ProfiledLoader<Loader> profile_iterable(Profiler& profiler, Loader& loader, std::string_view action) {
    return {profiler, loader, action};
}
template <BatchSource Source>
[[nodiscard]] ProfiledPass<Source> profile_iterable(Profiler& profiler, Source&& pass, std::string_view action) {
    return {profiler, std::move(pass), action};
}

}   // namespace drawpoint
