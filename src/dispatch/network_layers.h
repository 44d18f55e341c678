// The layers of the learned model's networks, for several choices of one problem at a time. Compiled twice: for any CPU, and
// with vectors of 8 floats for x86-64 CPUs that have them (network_wide.cpp). Each lane has a sum of its own and nothing is
// contracted (CMakeLists.txt), so both say the same to the last bit. Nothing here is shared with other files, which the wide
// version must not reach: no function of the standard library, and all of it `static` or a template on the vectors' width.
#pragma once

#include <cstddef>

namespace gemm {

struct NetworkWeights {
  static constexpr size_t kInputs = 19, kFirst = 64, kSecond = 8;

  size_t first;         // how many of the first layer's numbers are in use: 32 or all; the others are zero
  const float* choice;  // kInputs x kFirst
  const float* second;  // kFirst x kSecond
  const float* second_bias;
  const float* last;
  float last_bias;
};

// What the first layer gets from problem and kernel, and what is known of the choice.
struct NetworkQuestion {
  static constexpr size_t kStride = 8;  // from one input to the next: those of eight choices lie side by side

  const float* of_problem;
  const float* traits;
  const float* inputs;
};

struct NetworkFunctions {
  // Adds what the first layer gets from a problem to `sums`: from its inputs with these numbers.
  void (*add_problem)(const float* weights, const size_t* numbers, const float* inputs, size_t count, float* sums);
  // Writes `count` results.
  void (*ask)(const NetworkWeights& network, const NetworkQuestion* questions, size_t count, float* results);
};
NetworkFunctions wide_network_functions();

// kAtOnce questions share what is loaded of the weights, and wait less for each other's sums.
template <size_t kLanes, size_t kAtOnce>
struct NetworkLayers {
  typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
  static constexpr size_t kFirst = NetworkWeights::kFirst / kLanes, kSecond = NetworkWeights::kSecond / kLanes;

  static Lanes load(const float* from, size_t vector) {
    Lanes lanes;
    __builtin_memcpy(&lanes, from + vector * kLanes, sizeof lanes);
    return lanes;
  }
  static void store(const Lanes& lanes, float* to, size_t vector) {
    __builtin_memcpy(to + vector * kLanes, &lanes, sizeof lanes);
  }
  static void keep_positive(Lanes& x) { x = x > 0 ? x : Lanes{}; }

  // The vectors of the first layer from `part` on, as many as registers hold the sums of.
  static constexpr size_t kInRegisters = 4;
  static_assert(kFirst % kInRegisters == 0);
  static void first_layer(const NetworkWeights& network, const NetworkQuestion* questions, size_t part,
                          float (*positive)[NetworkWeights::kFirst]) {
    Lanes sums[kAtOnce][kInRegisters];
    for (size_t q = 0; q < kAtOnce; ++q)
      for (size_t i = 0; i < kInRegisters; ++i)
        sums[q][i] = load(questions[q].of_problem, part + i) + load(questions[q].traits, part + i);
    for (size_t j = 0; j < NetworkWeights::kInputs; ++j)
      for (size_t i = 0; i < kInRegisters; ++i) {
        const Lanes weights = load(network.choice + j * NetworkWeights::kFirst, part + i);
        for (size_t q = 0; q < kAtOnce; ++q) sums[q][i] += questions[q].inputs[j * NetworkQuestion::kStride] * weights;
      }
#pragma GCC unroll 8
    for (size_t q = 0; q < kAtOnce; ++q)
#pragma GCC unroll 8
      for (size_t i = 0; i < kInRegisters; ++i) keep_positive(sums[q][i]), store(sums[q][i], positive[q], part + i);
  }

  static void ask(const NetworkWeights& network, const NetworkQuestion* questions, float* results) {
    float positive[kAtOnce][NetworkWeights::kFirst];
    for (size_t part = 0; part < network.first / kLanes; part += kInRegisters)
      first_layer(network, questions, part, positive);
    finish(network, positive, results);
  }

  // The second layer and the last one. Even and odd inputs have sums of their own, which again wait less for each other.
  static void finish(const NetworkWeights& network, const float (*first)[NetworkWeights::kFirst], float* results) {
    Lanes even[kAtOnce][kSecond], odd[kAtOnce][kSecond];
    for (size_t q = 0; q < kAtOnce; ++q)
      for (size_t i = 0; i < kSecond; ++i) even[q][i] = load(network.second_bias, i), odd[q][i] = Lanes{};
#pragma GCC unroll 2
    for (size_t j = 0; j < network.first; j += 2)
      for (size_t i = 0; i < kSecond; ++i) {
        const Lanes of_even = load(network.second + j * NetworkWeights::kSecond, i);
        const Lanes of_odd = load(network.second + (j + 1) * NetworkWeights::kSecond, i);
        for (size_t q = 0; q < kAtOnce; ++q) even[q][i] += first[q][j] * of_even, odd[q][i] += first[q][j + 1] * of_odd;
      }
    for (size_t q = 0; q < kAtOnce; ++q) {
      float parts[NetworkWeights::kSecond];
      for (size_t i = 0; i < kSecond; ++i) {
        Lanes sum = even[q][i] + odd[q][i];
        keep_positive(sum);
        store(sum * load(network.last, i), parts, i);
      }
      results[q] = network.last_bias +
                   (((parts[0] + parts[4]) + (parts[1] + parts[5])) + ((parts[2] + parts[6]) + (parts[3] + parts[7])));
    }
  }
};

template <size_t kLanes>
void add_problem(const float* weights, const size_t* numbers, const float* inputs, size_t count, float* sums) {
  using Layers = NetworkLayers<kLanes, 1>;
  typename Layers::Lanes lanes[Layers::kFirst];
  for (size_t i = 0; i < Layers::kFirst; ++i) lanes[i] = Layers::load(sums, i);
  for (size_t j = 0; j < count; ++j)
    for (size_t i = 0; i < Layers::kFirst; ++i)
      lanes[i] += inputs[j] * Layers::load(weights + numbers[j] * NetworkWeights::kFirst, i);
  for (size_t i = 0; i < Layers::kFirst; ++i) Layers::store(lanes[i], sums, i);
}

template <size_t kLanes>
void ask_network(const NetworkWeights& network, const NetworkQuestion* questions, size_t count, float* results) {
  size_t i = 0;
  for (; i + 2 <= count; i += 2) NetworkLayers<kLanes, 2>::ask(network, questions + i, results + i);
  if (i < count) NetworkLayers<kLanes, 1>::ask(network, questions + i, results + i);
}

template <size_t kLanes>
NetworkFunctions network_functions() {
  return {add_problem<kLanes>, ask_network<kLanes>};
}

}  // namespace gemm
