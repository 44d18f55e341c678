#include "tuner/network_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <span>

// The fit takes seconds: twice as wide vectors where the CPU has them. Each lane has a sum of its own and nothing is
// contracted (CMakeLists.txt), so the result is the same. Sanitizers do not bear the resolver.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define GEMM_WIDE_VECTORS __attribute__((target_clones("avx2", "default")))
#else
#define GEMM_WIDE_VECTORS
#endif

namespace gemm {
namespace {

// Chosen by cross-validation on 1,100 random problems of an H200, where half or twice as much changes little; as little on
// 4,150.
constexpr int kEpochs = 100;
constexpr size_t kBatch = 4;  // problems, of some 40 rows each
constexpr double kRate = 3e-3;
constexpr int kWarmUp = 200;          // steps
constexpr float kDecay = 1e-2F;       // of weights, times the rate
constexpr float kCommonShare = 0.7F;  // of the error that all rows of a problem share: it changes no choice
constexpr float kOutlier = 0.5F;      // error at which a time counts half

constexpr float kMeanDecay = 0.9F, kSquareDecay = 0.999F;  // Adam's

// Everything that is fitted.
struct Weights {
  std::array<FirstLayer, kProblemInputs> problem{};
  std::array<FirstLayer, kChoiceInputs> choice{};
  std::array<FirstLayer, kKernelInputs> kernel{};
  FirstLayer bias{};
  std::array<SecondLayer, kFirstLayer> second{};
  SecondLayer second_bias{}, last{};
  float last_bias = 0;

  std::span<float> all() { return {reinterpret_cast<float*>(this), sizeof(Weights) / sizeof(float)}; }
};
static_assert(sizeof(Weights) % sizeof(float) == 0);

template <size_t N>
void add(std::array<float, N>& sum, float factor, const std::array<float, N>& x) {
  for (size_t i = 0; i < N; ++i) sum[i] += factor * x[i];
}

// What a row's layers are on the way forward.
struct Activations {
  FirstLayer first;
  SecondLayer second;
  float error;
};

GEMM_WIDE_VECTORS void forward(const Weights& w, const FirstLayer& start, const FitRow& row, Activations& a) {
  a.first = start;
  for (size_t j = 0; j < kChoiceInputs; ++j) add(a.first, row.inputs[j], w.choice[j]);
  for (float& x : a.first) x = x > 0 ? x : 0;
  a.second = w.second_bias;
  for (size_t j = 0; j < kFirstLayer; ++j) add(a.second, a.first[j], w.second[j]);
  float result = w.last_bias;
  for (size_t i = 0; i < kSecondLayer; ++i) {
    a.second[i] = a.second[i] > 0 ? a.second[i] : 0;
    result += a.second[i] * w.last[i];
  }
  a.error = result - row.log_ratio;
}

// Adds a row's part of the gradient, but for what the first layer gets from problem and kernel; that is returned.
GEMM_WIDE_VECTORS void backward(const Weights& w, const FitRow& row, const Activations& a, float slope, Weights& gradient,
                                FirstLayer& to_first) {
  SecondLayer to_second;
  for (size_t i = 0; i < kSecondLayer; ++i) to_second[i] = a.second[i] > 0 ? slope * w.last[i] : 0;
  gradient.last_bias += slope;
  add(gradient.last, slope, a.second);
  add(gradient.second_bias, 1, to_second);
  for (size_t j = 0; j < kFirstLayer; ++j) {
    float sum = 0;
    for (size_t i = 0; i < kSecondLayer; ++i) sum += w.second[j][i] * to_second[i];
    to_first[j] = a.first[j] > 0 ? sum : 0;
    add(gradient.second[j], a.first[j], to_second);
  }
  for (size_t j = 0; j < kChoiceInputs; ++j) add(gradient.choice[j], row.inputs[j], to_first);
}

class Descent {
 public:
  Descent(const std::vector<FitProblem>& problems, const std::vector<KernelInputs>& kernels, uint64_t seed)
      : problems_(problems), kernels_(kernels), bits_(seed), own_(kernels.size()), traits_(kernels.size()) {
    draw(weights_.problem, 1 / std::sqrt(static_cast<float>(kProblemInputs + kChoiceInputs)));
    draw(weights_.choice, 1 / std::sqrt(static_cast<float>(kProblemInputs + kChoiceInputs)));
    draw(weights_.kernel, 0.5F / std::sqrt(static_cast<float>(kKernelInputs)));
    draw(own_, 0.1F);
    draw(weights_.second, std::sqrt(2.F / kFirstLayer));
    // The last layer begins with 0, so that with few measurements little is said.
  }

  FittedNetwork run() {
    std::vector<size_t> order(problems_.size());
    std::iota(order.begin(), order.end(), 0);
    const double steps = kEpochs * std::ceil(static_cast<double>(order.size()) / kBatch);
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[bits_() % i]);
      for (size_t first = 0; first < order.size(); first += kBatch)
        step(std::span(order).subspan(first, std::min(kBatch, order.size() - first)), steps);
    }
    set_traits();
    FittedNetwork fitted;
    fitted.network.problem = weights_.problem;
    fitted.network.choice = weights_.choice;
    fitted.network.second = weights_.second;
    fitted.network.second_bias = weights_.second_bias;
    fitted.network.last = weights_.last;
    fitted.network.last_bias = weights_.last_bias;
    fitted.traits = traits_;
    return fitted;
  }

 private:
  // About normal, the same with every library.
  float normal() {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(bits_() >> 11) * 0x1p-53;
    return static_cast<float>(sum - 6);
  }
  template <class Layers>
  void draw(Layers& layers, float size) {
    for (auto& layer : layers)
      for (float& x : layer) x = size * normal();
  }

  void set_traits() {
    for (size_t k = 0; k < kernels_.size(); ++k) {
      traits_[k] = own_[k];
      add(traits_[k], 1, weights_.bias);
      for (size_t j = 0; j < kKernelInputs; ++j) add(traits_[k], kernels_[k][j], weights_.kernel[j]);
    }
  }

  void step(std::span<const size_t> batch, double steps) {
    set_traits();
    Weights gradient;
    std::vector<FirstLayer> to_traits(kernels_.size());
    float weight = 0;
    for (const size_t problem : batch) weight += add_problem(problems_[problem], gradient, to_traits);
    for (size_t k = 0; k < kernels_.size(); ++k) {
      add(gradient.bias, 1, to_traits[k]);
      for (size_t j = 0; j < kKernelInputs; ++j) add(gradient.kernel[j], kernels_[k][j], to_traits[k]);
    }
    ++step_;
    const double rate = kRate * std::min(1.0, step_ / kWarmUp) * (1 + std::cos(M_PI * step_ / steps)) / 2;
    move(weights_.all(), gradient.all(), moments_.all(), squares_.all(), 1 / weight, rate);
    const auto flat = [](std::vector<FirstLayer>& layers) {
      return std::span(layers.data()->data(), layers.size() * kFirstLayer);
    };
    own_moments_.resize(own_.size()), own_squares_.resize(own_.size());
    move(flat(own_), flat(to_traits), flat(own_moments_), flat(own_squares_), 1 / weight, rate);
  }

  // Returns the weight of all rows.
  float add_problem(const FitProblem& problem, Weights& gradient, std::vector<FirstLayer>& to_traits) {
    FirstLayer of_problem{}, to_problem{};
    for (size_t j = 0; j < kProblemInputs; ++j) add(of_problem, problem.inputs[j], weights_.problem[j]);
    activations_.resize(problem.rows.size());
    float weight = 0, error = 0;
    for (size_t i = 0; i < problem.rows.size(); ++i) {
      const FitRow& row = problem.rows[i];
      FirstLayer start = of_problem;
      add(start, 1, traits_[row.kernel]);
      forward(weights_, start, row, activations_[i]);
      weight += row.weight, error += row.weight * activations_[i].error;
    }
    const float common = kCommonShare * error / weight;
    for (size_t i = 0; i < problem.rows.size(); ++i) {
      const FitRow& row = problem.rows[i];
      const float off = activations_[i].error;
      FirstLayer to_first;
      backward(weights_, row, activations_[i], row.weight * (off - common) / (1 + off * off / (kOutlier * kOutlier)),
               gradient, to_first);
      add(to_problem, 1, to_first);
      add(to_traits[row.kernel], 1, to_first);
    }
    for (size_t j = 0; j < kProblemInputs; ++j) add(gradient.problem[j], problem.inputs[j], to_problem);
    return weight;
  }

  // Adam's step, with weights that decay.
  void move(std::span<float> x, std::span<const float> gradient, std::span<float> means, std::span<float> squares,
            float scale, double rate) const {
    const auto mean_share = static_cast<float>(1 - std::pow(kMeanDecay, step_));
    const auto square_share = static_cast<float>(1 - std::pow(kSquareDecay, step_));
    for (size_t i = 0; i < x.size(); ++i) {
      const float slope = gradient[i] * scale;
      means[i] = kMeanDecay * means[i] + (1 - kMeanDecay) * slope;
      squares[i] = kSquareDecay * squares[i] + (1 - kSquareDecay) * slope * slope;
      const float direction = means[i] / mean_share / (std::sqrt(squares[i] / square_share) + 1e-8F);
      x[i] -= static_cast<float>(rate) * (direction + kDecay * x[i]);
    }
  }

  const std::vector<FitProblem>& problems_;
  const std::vector<KernelInputs>& kernels_;
  std::mt19937_64 bits_;
  Weights weights_, moments_, squares_;
  std::vector<FirstLayer> own_, own_moments_, own_squares_;  // of each kernel
  std::vector<FirstLayer> traits_;                           // of each kernel, all that the first layer gets from it
  std::vector<Activations> activations_;
  double step_ = 0;
};

}  // namespace

FittedNetwork fit_network(const std::vector<FitProblem>& problems, const std::vector<KernelInputs>& kernels, uint64_t seed) {
  return Descent(problems, kernels, seed).run();
}

}  // namespace gemm
