#pragma once
// The facts of the journal, described for exact_json.h. Internal.
#include "core/control/fact.h"
#include "edge/codec/exact_nouns.h"

namespace takt::codec::exact {

using Outcome = control::Finished::Outcome;

inline constexpr Word<control::StopReason> stop_words[] = {
    {control::StopReason::cancelled, "cancelled"},
    {control::StopReason::kill_after, "kill-after"},
    {control::StopReason::memory_watchdog, "memory-watchdog"}};
inline constexpr auto& words(Tag<control::StopReason>) { return stop_words; }

inline constexpr Word<Outcome> outcome_words[] = {
    {Outcome::done, "done"}, {Outcome::failed, "failed"}, {Outcome::cancelled, "cancelled"}};
inline constexpr auto& words(Tag<Outcome>) { return outcome_words; }

template <class V, class T>
void fields(V& v, T& x, Tag<control::Submission>) {
  v("spec", x.spec);
  v("environment", x.environment);
  v("submitter", x.submitter);
  v("at", x.at);
  v("policy_revision", x.policy_revision);
  v("group", x.group);
  v("group_size", x.group_size);
  v("request", x.request);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::JobAccepted>) {
  v("job", x.job);
  v("count", x.count);
  v("group_index", x.group_index);
  v("submission", x.submission);
  v("parameters", x.parameters);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::CancelRequested>) {
  v("job", x.job);
  v("by", x.by);
  v("at", x.at);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::JobCancelled>) {
  v("job", x.job);
  v("at", x.at);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Granted>) {
  v("attempt", x.attempt);
  v("generation", x.generation);
  v("grant", x.grant);
  v("at", x.at);
  v("boot_id", x.boot_id);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::StopRequested>) {
  v("attempt", x.attempt);
  v("reason", x.reason);
  v("detail", x.detail);
  v("grace", x.grace);
  v("at", x.at);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Started>) {
  v("attempt", x.attempt);
  v("pid", x.pid);
  v("at", x.at);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Exited>) {
  v("attempt", x.attempt);
  v("exit", x.exit);
  v("at", x.at);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Released>) {
  v("attempt", x.attempt);
  v("at", x.at);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Requeued>) {
  v("job", x.job);
  v("cause", x.cause);
  v("at", x.at);
  v("not_before", x.not_before);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Finished>) {
  v("job", x.job);
  v("outcome", x.outcome);
  v("reason", x.reason);
  v("at", x.at);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::UsageCarried>) {
  v("user", x.user);
  v("usage", x.usage);
  v("at", x.at);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::CountersCarried>) {
  v("next_job", x.next_job);
  v("next_generation", x.next_generation);
  v("next_environment", x.next_environment);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::StateCreated>) {
  v("identity", x.identity);
  v("at", x.at);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::EnvironmentKept>) {
  v("number", x.number);
  v("variables", x.variables);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Placed>) {
  v("attempt", x.attempt);
  v("grant", x.grant);
  v("at", x.at);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::KillFailed>) {
  v("attempt", x.attempt);
  v("detail", x.detail);
  v("at", x.at);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::JobHeld>) {
  v("job", x.job);
  v("by", x.by);
  v("reason", x.reason);
  v("at", x.at);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::HoldLifted>) {
  v("job", x.job);
  v("by", x.by);
  v("at", x.at);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::Archived>) {
  v("jobs", x.jobs);
}

template <class V, class T>
void fields(V& v, T& x, Tag<control::ClockSet>) {
  v("by", x.by);
  v("boot_id", x.boot_id);
  v("offset", x.offset);
}

}  // namespace takt::codec::exact
