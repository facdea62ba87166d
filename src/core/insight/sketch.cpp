#include "core/insight/sketch.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace takt::insight {
namespace {

constexpr double gamma_base = (1 + Sketch::relative_error) / (1 - Sketch::relative_error);

int index_of(double value) {
  return static_cast<int>(std::ceil(std::log(value) / std::log(gamma_base)));
}

double representative(int index) { return 2 * std::pow(gamma_base, index) / (gamma_base + 1); }

}  // namespace

Sketch::Sketch(SketchData data) : data_(std::move(data)) {
  count_ = data_.zeros;
  for (const auto& [index, count] : data_.bins) count_ += count;
  collapse();
}

bool Sketch::add(double value) {
  if (!std::isfinite(value) || value < 0) return false;
  if (value < smallest) {
    ++data_.zeros;
  } else {
    ++data_.bins[index_of(value)];
    collapse();
  }
  ++count_;
  data_.sum += value;
  data_.max = std::max(data_.max, value);
  return true;
}

void Sketch::merge(const Sketch& other) {
  data_.zeros += other.data_.zeros;
  for (const auto& [index, count] : other.data_.bins) data_.bins[index] += count;
  collapse();
  count_ += other.count_;
  data_.sum += other.data_.sum;
  data_.max = std::max(data_.max, other.data_.max);
}

void Sketch::collapse() {
  if (data_.bins.empty()) return;
  const int floor = data_.bins.rbegin()->first - bins_max + 1;
  std::int64_t below = 0;
  while (data_.bins.begin()->first < floor) {
    below += data_.bins.begin()->second;
    data_.bins.erase(data_.bins.begin());
  }
  if (below > 0) data_.bins[floor] += below;
}

double Sketch::mean() const { return count_ == 0 ? 0 : data_.sum / static_cast<double>(count_); }

std::optional<double> Sketch::quantile(double q) const {
  if (count_ == 0) return std::nullopt;
  const double rank = std::clamp(q, 0.0, 1.0) * static_cast<double>(count_ - 1);
  if (rank >= static_cast<double>(count_ - 1)) return data_.max;
  auto seen = static_cast<double>(data_.zeros);
  if (seen > rank) return 0;
  for (const auto& [index, count] : data_.bins) {
    seen += static_cast<double>(count);
    if (seen > rank) return std::min(representative(index), data_.max);
  }
  return data_.max;
}

double Sketch::share_up_to(double value) const {
  if (count_ == 0 || value < 0) return 0;
  std::int64_t below = data_.zeros;
  for (const auto& [index, count] : data_.bins) {
    // The bin's upper bound is g^index; the factor forgives the rounding of pow.
    if (std::pow(gamma_base, index) > value * (1 + 1e-9)) break;
    below += count;
  }
  return static_cast<double>(below) / static_cast<double>(count_);
}

Quantiles Sketch::quantiles() const {
  Quantiles q;
  q.p50 = quantile(0.50).value_or(0);
  q.p75 = quantile(0.75).value_or(0);
  q.p95 = quantile(0.95).value_or(0);
  q.p99 = quantile(0.99).value_or(0);
  q.mean = mean();
  q.max = max();
  q.samples = count_;
  return q;
}

}  // namespace takt::insight
