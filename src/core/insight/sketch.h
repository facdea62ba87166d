#pragma once
// A DDSketch: quantiles of many samples in little memory, with a known relative error, that merge
// exactly. Masson, Rim, Lee: "DDSketch", VLDB 2019; FACTS B11.
//
// A value x > 0 is counted in bin ceil(log_g x) with g = (1 + a) / (1 - a); the bin's
// representative 2 g^i / (g + 1) is within a factor 1 +- a of every value of the bin. Values below
// `smallest` have their own counter. At most `bins_max` bins below the largest one are kept; what
// is lower counts in the lowest of them, which depends on the largest value only and so not on the
// order of merging.
#include <cstdint>
#include <optional>

#include "core/model/measurement.h"

namespace takt::insight {

class Sketch {
 public:
  static constexpr double relative_error = 0.01;
  static constexpr double smallest = 1e-9;
  static constexpr int bins_max = 2048;

  Sketch() = default;
  explicit Sketch(SketchData data);

  // False, and nothing is counted, for a negative, infinite or not-a-number value.
  bool add(double value);
  void merge(const Sketch& other);

  std::int64_t count() const { return count_; }
  double mean() const;  // exact; 0 without samples
  double max() const { return data_.max; }
  // The value of rank q * (count - 1), counted from 0, q in [0, 1] (clamped); the maximum is exact.
  // None without samples.
  std::optional<double> quantile(double q) const;
  // Share of the samples whose bin lies wholly at or below `value`, 0-1. 0 without samples.
  double share_up_to(double value) const;
  Quantiles quantiles() const;
  const SketchData& data() const { return data_; }

 private:
  void collapse();

  SketchData data_;
  std::int64_t count_ = 0;
};

}  // namespace takt::insight
